// What is selected, in one place; who shows something of it listens.

const listeners = [];

export const state = {
  file: 0,
  line: null, // { file, line } of the author's source
  item: null, // what the inspector shows: a write, a print, or a whole array
  position: 0, // the moment: an instruction
  tab: "overview",
  finding: null, // the finding that is marked
  cell: null, // [row, column] of the cells of the tile that is shown
  lit: null, // { tile, mask }: the elements that count for what was asked
  sameScale: true,
  scale: "linear", // how values become colours
};

export function listen(listener) {
  listeners.push(listener);
}

export function set(changes) {
  const changed = new Set(Object.keys(changes).filter((key) => state[key] !== changes[key]));
  if (!changed.size) return;
  Object.assign(state, changes);
  for (const listener of listeners) listener(changed);
}
