// Function ids as tool names. Vendors allow letters, digits, `_` and `-` only, so `::` travels as `__`.

const MAX_NAME = 64;

/** The name a function id has on a vendor's wire, taken alone. */
export function encodeToolName(id: string): string {
  return (
    id
      .replaceAll("::", "__")
      .replace(/[^a-zA-Z0-9_-]/g, "_")
      .slice(0, MAX_NAME) || "_"
  );
}

export interface ToolNames {
  encode(id: string): string;
  /** The id that was encoded as this name in this request; a name nobody encoded is read by the rule alone. */
  decode(name: string): string;
}

/** Names for the tools of one request: unique, and mapped back exactly, also where the rule alone is ambiguous. */
export function toolNames(ids: readonly string[]): ToolNames {
  const byId = new Map<string, string>();
  const byName = new Map<string, string>();
  for (const id of ids) {
    if (byId.has(id)) continue;
    const plain = encodeToolName(id);
    let name = plain;
    for (let n = 2; byName.has(name); n += 1) name = `${plain.slice(0, MAX_NAME - 4)}_${n}`;
    byId.set(id, name);
    byName.set(name, id);
  }
  return {
    encode: (id) => byId.get(id) ?? encodeToolName(id),
    decode: (name) => byName.get(name) ?? name.replaceAll("__", "::"),
  };
}
