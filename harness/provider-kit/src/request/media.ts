// Pictures and sound as a vendor takes them, or as a text that says what they were. Pure.
import type { ContentBlock } from "@iii/contracts";

/** What a wire and its models take. */
export interface Takes {
  /** Kinds of pictures, by mime. */
  readonly images: ReadonlySet<string>;
  readonly max_image_bytes: number;
  /** Whether pictures may stand in the result of a call; else they follow as the user's. */
  readonly images_in_results: boolean;
  /** Whether thinking may only go back to this address with a signature. */
  readonly signed_only: (url: string) => boolean;
}

/** Kinds that all vendors with eyes take. */
export const COMMON_IMAGES: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

const SPELLINGS: Readonly<Record<string, string>> = {
  "image/jpg": "image/jpeg",
  "image/pjpeg": "image/jpeg",
  "image/jpe": "image/jpeg",
  "image/x-png": "image/png",
};
/** How the data of a kind begins, in base64: vendors compare it with the mime and refuse the conversation when they differ. */
const BEGINNINGS: readonly (readonly [string, string])[] = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"],
  ["JVBERi0", "application/pdf"],
  ["PHN2Z", "image/svg+xml"],
  ["PD94bWw", "image/svg+xml"],
  ["Qk0", "image/bmp"],
  ["SUkqA", "image/tiff"],
];

interface Data {
  readonly mime: string;
  /** Plain base64; empty when it was none. */
  readonly base64: string;
  readonly bytes: number;
}

function read(mime: string, data: string): Data {
  const [prefix = "", named = ""] = /^\s*data:([^;,]*)[^,]*,/.exec(data.slice(0, 200)) ?? [];
  const plain = data.slice(prefix.length).replace(/\s+/g, "").replaceAll("-", "+").replaceAll("_", "/");
  const base64 = /^[A-Za-z0-9+/]+={0,2}$/.test(plain) ? plain : "";
  const said = (named || mime).split(";")[0]?.trim().toLowerCase() ?? "";
  const seen = BEGINNINGS.find(([beginning]) => base64.startsWith(beginning))?.[1];
  // WebP and WAV begin alike.
  const known = said.startsWith("image/") || said === "" ? seen : undefined;
  return { mime: known ?? SPELLINGS[said] ?? said, base64, bytes: Math.floor((base64.replace(/=+$/, "").length * 3) / 4) };
}

const size = (bytes: number): string => (bytes < 1024 ? `${bytes} bytes` : `${Math.round(bytes / 1024)} KB`);

function whyNot({ mime, base64, bytes }: Data, takes: Takes, vision: boolean): string | undefined {
  if (base64 === "") return "it has no readable data";
  if (!vision) return "this model takes no images";
  if (!takes.images.has(mime)) return "this model takes no images of this kind";
  return bytes > takes.max_image_bytes ? `it is larger than ${size(takes.max_image_bytes)}` : undefined;
}

/** A picture or a sound as it may be sent; `repair` says what was done to it. */
export function sendable(
  block: ContentBlock & { type: "image" | "audio" },
  takes: Takes,
  vision: boolean,
): { readonly block: ContentBlock; readonly repair?: string } {
  const data = read(block.mime, block.data);
  const why = block.type === "audio" ? "this model takes no sound" : whyNot(data, takes, vision);
  if (why !== undefined) {
    const text = `[${block.type} ${data.mime || "of unknown kind"}, ${size(data.bytes)}: not sent, ${why}]`;
    return { block: { type: "text", text }, repair: `${block.type} ${data.mime} replaced by a text` };
  }
  if (data.mime === block.mime && data.base64 === block.data) return { block };
  return { block: { type: "image", mime: data.mime, data: data.base64 }, repair: `image ${block.mime} put right` };
}
