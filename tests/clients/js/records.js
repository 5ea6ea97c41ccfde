"use strict";
// Records whose bytes follow from a seed, and digests of what was consumed: ../records.py in JavaScript.

const { createHash } = require("node:crypto");

const sha256 = (content) => createHash("sha256").update(content);

/** Record `index` of `seed`, as kafkajs takes it. */
function record(seed, index, size, withHeaders) {
  const draw = sha256(`${seed}/${index}`).digest();
  const key = draw[0] < 32 ? null : draw.subarray(0, draw[1] % 16);
  const repeats = size ? Math.ceil(size / draw.length) : draw[2] % 8;
  const value = draw[3] < 16 && key !== null && !size ? null : Buffer.concat(Array(repeats).fill(draw));
  const headers = {};
  for (let number = 0; withHeaders && number < draw[4] % 3; number += 1) {
    headers[`name-${number}`] = draw.subarray(6, 6 + (draw[5] % 8));
  }
  return { key, value, headers };
}

/** 32 hex digits that differ where any byte of a message differs, null and empty told apart. */
function fingerprint(topic, { key, value, headers }) {
  const hashed = createHash("sha256");
  for (const part of [topic, key, value, ...Object.entries(headers).flat()]) {
    const bytes = part === null ? null : Buffer.from(part);
    hashed.update(bytes === null ? "null;" : Buffer.concat([Buffer.from(`${bytes.length}:`), bytes, Buffer.from(";")]));
  }
  return hashed.digest("hex").slice(0, 32);
}

/** One digest of many records, in whatever order they came. */
const digest = (fingerprints) => sha256([...fingerprints].sort().join("\n")).digest("hex");

module.exports = { record, fingerprint, digest };
