/* Long lists of numbers between worker and page. Cloning a list of numbers and nulls costs the main thread ten
 * times what handing over an array does; so the worker packs them, and the page unpacks them. */
const LEAST = 256; // shorter lists are cloned

interface Packed {
  packed: Float64Array;
}

const isPacked = (v: unknown): v is Packed => v !== null && typeof v === "object" && (v as Partial<Packed>).packed instanceof Float64Array;

function packList(list: readonly unknown[]): Packed | null {
  const packed = new Float64Array(list.length);
  for (let i = 0; i < list.length; i++) {
    const v = list[i];
    if (v === null) packed[i] = NaN; // a list that holds NaN itself is not packed
    else if (typeof v !== "number" || Number.isNaN(v)) return null;
    else packed[i] = v;
  }
  return { packed };
}

/** A copy of a plain object in which long lists of numbers and nulls are arrays; other values as they are. */
export function pack(output: unknown): unknown {
  if (output === null || typeof output !== "object" || Object.getPrototypeOf(output) !== Object.prototype) return output;
  return Object.fromEntries(Object.entries(output).map(([name, v]) => [name, Array.isArray(v) && v.length >= LEAST ? packList(v) ?? v : v]));
}

/** What pack() was given. */
export function unpack(output: unknown): unknown {
  if (output === null || typeof output !== "object" || Object.getPrototypeOf(output) !== Object.prototype) return output;
  const object = output as Record<string, unknown>;
  for (const [name, v] of Object.entries(object)) {
    if (!isPacked(v)) continue;
    const list = new Array<number | null>(v.packed.length);
    for (let i = 0; i < list.length; i++) { const n = v.packed[i]!; list[i] = n !== n ? null : n; }
    object[name] = list;
  }
  return object;
}
