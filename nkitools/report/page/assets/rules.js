// The rules of element maps: which elements of an operand made the wanted ones of a result. Masks are bytes in C order.
export const sizeOf = (sizes) => sizes.reduce((all, each) => all * each, 1);
const form = (shape) => [shape.length ? shape[0] : 1, sizeOf(shape.slice(1))];

// For each element of `shape` the element of the result that `place` gives; marked where that one is wanted.
function pulled(shape, wanted, place) {
  const [rows, columns] = form(shape), found = new Uint8Array(rows * columns);
  for (let row = 0, at = 0; row < rows; row++) for (let column = 0; column < columns; column++, at++) found[at] = wanted[place(row, column)];
  return found;
}

// Some dimensions of a mask taken together: marked where any element along them is.
function anyAlong(mask, shape, of, size) {
  const [rows, columns] = form(shape), found = new Uint8Array(size);
  for (let row = 0, at = 0; row < rows; row++) for (let column = 0; column < columns; column++, at++) if (mask[at]) found[of(row, column)] = 1;
  return found;
}

// Each stretch of so many elements as often one after the other.
function repeated(mask, length, times) {
  const found = new Uint8Array(mask.length * times);
  for (let from = 0, to = 0; from < mask.length; from += length) {
    const stretch = mask.subarray(from, from + length);
    for (let turn = 0; turn < times; turn++, to += length) found.set(stretch, to);
  }
  return found;
}

function indexOf(flat, shape) {
  const index = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index[axis] = flat % shape[axis];
    flat = Math.floor(flat / shape[axis]);
  }
  return index;
}

const flatOf = (index, shape) => index.reduce((flat, each, axis) => flat * shape[axis] + each, 0);

const RULES = {
  Same: ({ mask }) => mask,
  Broadcast({ mask, shape: wide }, shape) {
    const [rows, columns] = form(shape);
    return anyAlong(mask, wide, (row, column) => (rows === 1 ? 0 : row) * columns + (columns === 1 ? 0 : column), rows * columns);
  },
  Transpose({ mask }, shape, { order }) {
    const last = order.length - 1, sizes = [...shape.slice(0, last), sizeOf(shape.slice(last))];
    const moved = order.map((axis) => sizes[axis]), found = new Uint8Array(mask.length);
    mask.forEach((each, flat) => {
      if (!each) return;
      const there = indexOf(flat, moved), here = [];
      order.forEach((axis, at) => (here[axis] = there[at]));
      found[flatOf(here, sizes)] = 1;
    });
    return found;
  },
  Column({ mask, shape: wide }, shape, { axis, rows }) {
    const count = form(wide)[axis], all = sizeOf(shape);
    const columns = anyAlong(mask, wide, (row, column) => (axis ? column : row), count);
    const kept = rows && new Set(rows), found = new Uint8Array(all);
    for (let at = 0; at < all; at++) found[at] = columns[at % count] && (!kept || kept.has(Math.floor(at / count))) ? 1 : 0;
    return found;
  },
  Axes({ mask }, shape, { axes }) {
    const gone = new Set(axes ?? shape.map((_, axis) => axis).slice(1));
    // Outer elements in order, each as often as the dimensions behind it that are gone say.
    let found = mask;
    for (let axis = shape.length - 1, inner = 1; axis >= 0; inner *= shape[axis], axis--) if (gone.has(axis)) found = repeated(found, inner, shape[axis]);
    return found;
  },
  Turns({ mask, shape: wide }, shape, { turns }) {
    const [rows, columns] = form(wide), each = columns / turns;
    const parts = anyAlong(mask, wide, (row, column) => row * turns + Math.floor(column / each), rows * turns);
    return pulled(shape, parts, (row, column) => row * turns + (column % turns));
  },
  Blocks({ mask, shape: wide }, shape, { partitions, places, rows }) {
    const [, columns] = form(wide), blocks = rows ? rows.length : form(wide)[0] / partitions;
    const of = rows ? new Map(rows.map((row, at) => [row, at])) : null, found = new Uint8Array(blocks * columns);
    mask.forEach((each, flat) => {
      const row = Math.floor(flat / columns), block = of ? of.get(row) : Math.floor(row / partitions);
      if (each && block !== undefined) found[block * columns + (flat % columns)] = 1;
    });
    return pulled(shape, found, (row, column) => Math.floor(row / partitions) * columns + Math.floor(column / places));
  },
  Scan({ mask, shape: wide }, shape) {
    const [rows, columns] = form(wide), found = new Uint8Array(rows * columns);
    for (let row = 0; row < rows; row++) {
      for (let column = columns - 1, any = 0; column >= 0; column--) found[row * columns + column] = any |= mask[row * columns + column];
    }
    return found;
  },
  All({ mask, shape: wide }, shape, { partitions }) {
    const all = sizeOf(shape);
    if (!partitions) return new Uint8Array(all).fill(mask.includes(1) ? 1 : 0);
    const groups = Math.floor(form(wide)[0] / partitions), each = mask.length / groups, found = new Uint8Array(groups);
    mask.forEach((one, flat) => { if (one) found[Math.floor(flat / each)] = 1; });
    return Uint8Array.from({ length: all }, (_, at) => found[Math.floor(at / (all / groups))]);
  },
  Parts({ mask, shape: wide }, shape, { stretches, dimension }) {
    const found = new Uint8Array(sizeOf(shape));
    const moved = (at) => stretches.filter(([result, , count]) => at >= result && at < result + count).map(([result, operand]) => at - result + operand);
    mask.forEach((each, flat) => {
      if (!each) return;
      if (dimension === undefined) return moved(flat).forEach((at) => (found[at] = 1));
      const index = indexOf(flat, wide);
      for (const at of moved(index[dimension])) found[flatOf(index.map((one, axis) => (axis === dimension ? at : one)), shape)] = 1;
    });
    return found;
  },
  Index({ mask, shape: wide }, shape, { each = 1, partitions = 1 }) {
    const columns = form(shape)[1];
    return anyAlong(mask, wide, (row, column) => {
      const number = Math.floor(column / each);
      return (row - (row % partitions) + (number % partitions)) * columns + Math.floor(number / partitions);
    }, sizeOf(shape));
  },
  // The values of an index are not looked at: any element of the partition, or of the column, may have been chosen.
  Gather: (wanted, shape) => RULES.All(wanted, shape, { partitions: 1 }),
  Permutation: (wanted, shape) => RULES.Column(wanted, shape, { axis: 0 }),
  Only({ mask, shape: wide }, shape, { rule, made, of }) {
    const found = madeOf(rule.rule, { mask: within(mask, made), shape: wide }, shape);
    return within(found, of);
  },
};

const NEED_VALUES = new Set(["Gather", "Permutation"]);

function within(mask, bounds) {
  if (!bounds) return mask;
  const bit = (at) => (parseInt(bounds.bits.substr(2 * (at >> 3), 2), 16) >> (7 - (at & 7))) & 1;
  return mask.map((each, at) => (each ? bit(at) : 0));
}

// A rule is its name and its fields, as the record keeps it; `wanted` is the mask and the shape of the result.
export function madeOf([name, fields], wanted, shape) {
  return RULES[name](wanted, shape, fields);
}

export const isLoose = ([name, fields]) => NEED_VALUES.has(name) || (name === "Only" && isLoose(fields.rule.rule));
