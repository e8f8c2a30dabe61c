"""Searches over one sentence of a `TableModel`, written as plainly as possible."""

import numpy as np

from tests.decoding.toys import BOS
from tests.decoding.toys import EOS
from tests.decoding.toys import PAD
from tests.decoding.toys import UNK


def log_probabilities(model, sentence):
    """float64 `[T, V, V]`."""
    tables = model.tables[sentence].astype("float64")
    return tables - np.log(np.exp(tables).sum(-1, keepdims=True))


def repeats(ids, size):
    """Whether some n-gram of that size occurs twice."""
    ngrams = [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]
    return size > 0 and len(set(ngrams)) < len(ngrams)


def continuations(
    model,
    bodies,
    min_length=0,
    max_length=None,
    block_unknown=False,
    no_repeat_ngram=0,
    prefix=(),
):
    """All continuations of hypotheses of equal length by one token."""
    position = len(bodies[0])
    if position + 1 == (max_length or model.max_length):
        return [[(*body, EOS)] for body in bodies]
    if position < len(prefix) and prefix[position] != PAD:
        return [[(*body, prefix[position])] for body in bodies]
    tokens = [UNK, *range(EOS, model.vocabulary_size)][block_unknown:]
    if position < min_length:
        tokens.remove(EOS)
    found = [
        [(*b, t) for t in tokens if t == EOS or not repeats((*b, t), no_repeat_ngram)]
        for b in bodies
    ]
    return found if any(found) else [[(*body, EOS)] for body in bodies]


def naive_beam(model, sentence, beams, n_best=1, length_penalty=0.6, **options):
    """Ids and scores of the finished hypotheses, best first."""
    log_probs = log_probabilities(model, sentence)
    live, finished = {(): 0.0}, []
    for position in range(model.max_length):
        if not live:
            break
        bodies = list(live)
        candidates = {
            ids: live[body] + log_probs[position, (BOS, *body)[-1], ids[-1]]
            for body, several in zip(
                bodies, continuations(model, bodies, **options), strict=True
            )
            for ids in several
        }
        best = sorted(candidates, key=lambda ids: -candidates[ids])[: 2 * beams]
        finished += [
            (ids, candidates[ids] * (6 / (5 + len(ids))) ** length_penalty)
            for ids in best
            if ids[-1] == EOS
        ]
        live = {ids: candidates[ids] for ids in best if ids[-1] != EOS}
        live = dict(list(live.items())[:beams])
    return sorted(finished, key=lambda found: -found[1])[:n_best]


def naive_greedy(model, sentence, **options):
    """Ids and their log probabilities."""
    log_probs = log_probabilities(model, sentence)
    ids, gains = (), []
    while ids[-1:] != (EOS,):
        [several] = continuations(model, [ids], **options)
        row = log_probs[len(ids), (BOS, *ids)[-1]]
        ids = max(several, key=lambda ids: row[ids[-1]])
        gains.append(row[ids[-1]])
    return ids, gains


def tokens(row):
    """A row of ids without its padding."""
    return tuple(int(token) for token in row[row != PAD])
