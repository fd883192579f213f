// The elements of a tile as a file that numpy.load reads.
import { EXACT, dtypeOf, nameOf, shapeOf, tile } from "./data.js";
import { h } from "./dom.js";

const DESCRIPTIONS = new Map([[Float32Array, "<f4"], [Float64Array, "<f8"], [Int32Array, "<i4"], [Uint32Array, "<u4"], [Int8Array, "|i1"], [Uint8Array, "|u1"]]);

// The bytes of version 1.0 of the format: a head of a multiple of 64 bytes, then the elements.
export function npyOf(values, sizes) {
  const shape = sizes.length === 1 ? `(${sizes[0]},)` : `(${sizes.join(", ")})`;
  const head = `{'descr': '${DESCRIPTIONS.get(values.constructor)}', 'fortran_order': False, 'shape': ${shape}, }`;
  const length = Math.ceil((head.length + 11) / 64) * 64 - 10;
  const bytes = new Uint8Array(10 + length + values.byteLength);
  bytes.set([0x93, ...[..."NUMPY"].map((each) => each.charCodeAt(0)), 1, 0, length & 255, length >> 8]);
  bytes.set([...`${head.padEnd(length - 1)}\n`].map((each) => each.charCodeAt(0)), 10);
  bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), 10 + length);
  return bytes;
}

export function npyOfItem(item) {
  return npyOf(tile(item.tile).values, item.kind === "array" ? item.value.shape : shapeOf(item));
}

// A button where every element is there as it is; of dtypes that NumPy lacks the file has float32, and of packed ones the codes.
export function download(item) {
  const { quality, values } = tile(item.tile);
  if (quality !== EXACT || !values.length) return null;
  const name = `${(item.title ?? nameOf(item)).replace(/[^\w.-]+/g, "_") || "tile"}.npy`;
  const save = () => {
    const link = h("a", { href: URL.createObjectURL(new Blob([npyOfItem(item)])), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const dtype = item.kind === "array" ? item.value.dtype : dtypeOf(item);
  return h("button.link", { onclick: save, title: `${dtype}, saved as ${DESCRIPTIONS.get(values.constructor)}` }, ".npy");
}
