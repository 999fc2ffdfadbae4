// The header of a WebSocket frame without fragments (RFC 6455, 5.2).

export const TEXT = 0x81;
export const BINARY = 0x82;
/** What a header takes at most, its mask not counted. */
export const MAX_HEADER = 10;
const MASKED = 0x80;

/** The bytes that a header takes before its mask. */
export function headerSize(length: number): number {
  if (length < 126) return 2;
  return length < 65_536 ? 4 : MAX_HEADER;
}

/** Writes the header of a frame of `length` bytes at `at`; the position after it. */
export function writeHeader(target: Buffer, at: number, first: number, length: number, masked = false): number {
  const mask = masked ? MASKED : 0;
  target[at] = first;
  if (length < 126) {
    target[at + 1] = length | mask;
    return at + 2;
  }
  if (length < 65_536) {
    target[at + 1] = 126 | mask;
    target[at + 2] = length >>> 8;
    target[at + 3] = length & 0xff;
    return at + 4;
  }
  target[at + 1] = 127 | mask;
  target.writeBigUInt64BE(BigInt(length), at + 2);
  return at + 10;
}
