"""Translates with the model in this folder, without TensorFlow.

pip install onnxruntime numpy sentencepiece
python translate.py 'A sentence.' 'Another one.'
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import sentencepiece

IMPOSSIBLE = -1e30


class Translator:
    """Beam search for the hypothesis of the best score, as in the package."""

    def __init__(self, folder: Path) -> None:
        self.settings = json.loads((folder / "model.json").read_text("utf-8"))
        self.encode, self.initial_state, self.step = (
            onnxruntime.InferenceSession(folder / f"{name}.onnx")
            for name in ("encode", "initial_state", "step")
        )
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(
                model_file=str(folder / self.settings[f"{side}_tokenizer"])
            )
            for side in ("source", "target")
        )

    def translate(self, text: str) -> str:
        """The best translation of a text."""
        ids, _ = self.search(self.source.encode(text))
        return self.target.decode(ids)

    def search(self, source_ids: list[int]) -> tuple[list[int], float]:
        """The ids of the best translation, without its end, and its score."""
        settings = self.settings
        beams, end = settings["beam_size"], settings["eos_id"]
        source_ids = source_ids[: settings["max_length"]]
        if not source_ids:
            return [], 0.0
        limit = min(len(source_ids) + settings["extra_length"], settings["max_length"])
        # A translation scores its log probability times a factor of its length.
        factors = (6 / (5 + np.arange(limit + 2))) ** settings["length_penalty"]
        given: dict[str, Any] = {"source_ids": np.array([source_ids], "int32")}
        given |= {"max_length": np.array(limit, "int32")}
        given |= run(self.encode, given)
        given |= run(self.initial_state, given)
        candidates = 2 * beams if beams > 1 else 1  # one: greedy search
        tokens = np.full(beams, settings["bos_id"])
        parents = np.arange(beams)
        totals = np.where(parents == 0, 0.0, IMPOSSIBLE)
        ids: list[list[int]] = [[]] * beams
        best, best_score = ids[0], IMPOSSIBLE
        for position in range(limit):
            given["tokens"] = tokens[None].astype("int32")
            given["parents"] = parents[None].astype("int32")
            given["position"] = np.array(position, "int32")
            found = run(self.step, given)
            gains = found.pop("log_probs")[0]
            given |= {name.replace("next", "state", 1): found[name] for name in found}
            gains[:, [settings["pad_id"], settings["bos_id"]]] = IMPOSSIBLE
            if position + 1 == limit:
                gains[:, np.arange(gains.shape[1]) != end] = IMPOSSIBLE
            sums = np.maximum(totals[:, None] + gains, IMPOSSIBLE).ravel()
            order = np.argsort(-sums, kind="stable")[:candidates]
            parents, tokens = np.divmod(order, gains.shape[1])
            for place in order[tokens == end]:
                score = float(sums[place] * factors[position + 1])
                if score > best_score:
                    best, best_score = ids[place // gains.shape[1]], score
            going = (tokens != end).nonzero()[0][:beams]
            totals, parents, tokens = sums[order[going]], parents[going], tokens[going]
            ids = [ids[i] + [int(t)] for i, t in zip(parents, tokens, strict=True)]
            # Unfinished hypotheses lose least at this length or at the largest one.
            least = min(factors[position + 2], factors[limit])
            if not ids or totals[0] * least <= best_score:
                break
        return best, best_score


def run(session: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The outputs of a graph by name; each input has a value of its name."""
    inputs = {x.name: given[x.name] for x in session.get_inputs()}
    names = [x.name for x in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


if __name__ == "__main__":
    translator = Translator(Path(__file__).parent)
    for text in sys.argv[1:]:
        print(translator.translate(text))
