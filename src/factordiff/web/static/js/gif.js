// GIF89a, from pictures of at most 256 colors: header, palette, and LZW by the book.

function lzw(indices, bits) {
  const clear = 1 << bits;
  const out = [];
  let codes = new Map();
  let next = clear + 2;
  let width = bits + 1;
  let buffer = 0;
  let filled = 0;
  const write = (code) => {
    buffer |= code << filled;
    filled += width;
    while (filled >= 8) { out.push(buffer & 255); buffer >>>= 8; filled -= 8; }
  };
  write(clear);
  let prefix = indices[0];
  for (let at = 1; at < indices.length; at++) {
    const key = prefix * 256 + indices[at];
    const known = codes.get(key);
    if (known !== undefined) { prefix = known; continue; }
    write(prefix);
    if (next < 4096) {
      codes.set(key, next);
      if (next === 1 << width) width++;
      next++;
    } else {
      write(clear);
      codes = new Map();
      next = clear + 2;
      width = bits + 1;
    }
    prefix = indices[at];
  }
  write(prefix);
  write(clear + 1);
  if (filled) out.push(buffer & 255);
  return out;
}

// The 255 most frequent colors of all frames (in steps of 8 per channel), and an index for any color.
function palette(frames) {
  const counts = new Map();
  const key = (data, at) => ((data[at] >> 3) << 10) | ((data[at + 1] >> 3) << 5) | (data[at + 2] >> 3);
  const exact = new Map();
  for (const { data } of frames) {
    for (let at = 0; at < data.length; at += 4) {
      const one = key(data, at);
      counts.set(one, (counts.get(one) ?? 0) + 1);
      if (!exact.has(one)) exact.set(one, [data[at], data[at + 1], data[at + 2]]);
    }
  }
  const colors = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 255).map(([one]) => exact.get(one));
  const found = new Map();
  const indexOf = (data, at) => {
    const one = key(data, at);
    let index = found.get(one);
    if (index === undefined) {
      let best = Infinity;
      colors.forEach(([r, g, b], place) => {
        const far = (r - data[at]) ** 2 + (g - data[at + 1]) ** 2 + (b - data[at + 2]) ** 2;
        if (far < best) { best = far; index = place; }
      });
      found.set(one, index);
    }
    return index;
  };
  return { colors, indexOf };
}

// frames: ImageData of one size; delays in hundredths of a second.
export function encodeGif(frames, delays) {
  const { width, height } = frames[0];
  const { colors, indexOf } = palette(frames);
  const bits = Math.max(2, Math.ceil(Math.log2(Math.max(colors.length, 2))));
  const short = (number) => [number & 255, number >> 8];
  const parts = [[...new TextEncoder().encode("GIF89a"), ...short(width), ...short(height), 0x80 | 0x70 | (bits - 1), 0, 0]];
  parts.push(Array.from({ length: 1 << bits }, (_, place) => colors[place] ?? [0, 0, 0]).flat());
  parts.push([0x21, 0xff, 11, ...new TextEncoder().encode("NETSCAPE2.0"), 3, 1, 0, 0, 0]);
  frames.forEach(({ data }, number) => {
    const indices = new Uint8Array(width * height);
    for (let pixel = 0; pixel < indices.length; pixel++) indices[pixel] = indexOf(data, pixel * 4);
    parts.push([0x21, 0xf9, 4, 4, ...short(delays[number]), 0, 0, 0x2c, 0, 0, 0, 0, ...short(width), ...short(height), 0, bits]);
    const packed = lzw(indices, bits);
    for (let at = 0; at < packed.length; at += 255) {
      const block = packed.slice(at, at + 255);
      parts.push([block.length, ...block]);
    }
    parts.push([0]);
  });
  parts.push([0x3b]);
  return new Blob(parts.map((part) => Uint8Array.from(part)), { type: "image/gif" });
}
