// Translates ids of tokens with the model in this folder, by ONNX Runtime Web:
//
//     import * as ort from "onnxruntime-web";
//     import { load, search } from "./translate.js";
//     const model = await load(ort, "https://…/folder");
//     const { ids, score } = await search(model, [17, 4, 93]);
//
// SentencePiece turns a text into ids with the source_tokenizer of model.json, and ids
// into a text with its target_tokenizer; packages for browsers exist.

const IMPOSSIBLE = -1e30;

export async function load(ort, folder) {
  const settings = await (await fetch(`${folder}/model.json`)).json();
  const model = { ort, settings };
  for (const name of ["encode", "initial_state", "step"]) {
    model[name] = await ort.InferenceSession.create(`${folder}/${name}.onnx`);
  }
  return model;
}

// The outputs of a graph by name; each input has a value of its name.
async function run(session, given) {
  const inputs = session.inputNames.map((name) => [name, given[name]]);
  return session.run(Object.fromEntries(inputs));
}

// Beam search: the ids of the best translation, without its end, and its score.
export async function search({ ort, settings, ...graphs }, sourceIds) {
  const { beam_size: beams, eos_id: end, pad_id, bos_id, max_length } = settings;
  const integers = (values, shape) =>
    new ort.Tensor("int32", Int32Array.from(values), shape);
  sourceIds = sourceIds.slice(0, max_length);
  if (!sourceIds.length) return { ids: [], score: 0 };
  const limit = Math.min(sourceIds.length + settings.extra_length, max_length);
  // A translation scores its log probability times a factor of its length.
  const factor = (length) => (6 / (5 + length)) ** settings.length_penalty;
  const given = {
    source_ids: integers(sourceIds, [1, sourceIds.length]),
    max_length: integers([limit], []),
  };
  Object.assign(given, await run(graphs.encode, given));
  Object.assign(given, await run(graphs.initial_state, given));
  const candidates = beams > 1 ? 2 * beams : 1;  // one: greedy search
  let live = Array.from({ length: beams }, (_, parent) => ({
    parent, token: bos_id, ids: [], total: parent ? IMPOSSIBLE : 0,
  }));
  let best = { ids: [], score: IMPOSSIBLE };
  for (let position = 0; position < limit; position++) {
    given.tokens = integers(live.map((each) => each.token), [1, beams]);
    given.parents = integers(live.map((each) => each.parent), [1, beams]);
    given.position = integers([position], []);
    const { log_probs, ...next } = await run(graphs.step, given);
    for (const name in next) given[name.replace("next", "state")] = next[name];
    const size = log_probs.dims[2];
    const found = [];  // the best candidates, best first; earlier ones win ties
    for (let place = 0; place < beams * size; place++) {
      const parent = Math.floor(place / size), token = place % size;
      if (token === pad_id || token === bos_id) continue;
      if (position + 1 === limit && token !== end) continue;
      const total = live[parent].total + log_probs.data[place];
      if (found.length === candidates && total <= found.at(-1).total) continue;
      const after = found.findIndex((other) => other.total < total);
      found.splice(after < 0 ? found.length : after, 0, { parent, token, total });
      found.length = Math.min(found.length, candidates);
    }
    for (const { parent, token, total } of found) {
      const score = total * factor(position + 1);
      if (token === end && score > best.score) best = { ids: live[parent].ids, score };
    }
    live = found.filter(({ token }) => token !== end).slice(0, beams)
      .map((each) => ({ ...each, ids: [...live[each.parent].ids, each.token] }));
    // Unfinished hypotheses lose least at this length or at the largest one.
    const least = Math.min(factor(position + 2), factor(limit));
    if (!live.length || live[0].total * least <= best.score) break;
  }
  return best;
}
