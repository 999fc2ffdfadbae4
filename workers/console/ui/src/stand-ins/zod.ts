// Stands in for the schema library inside the page's bundle, where schemas are built at import but never used: every use answers with
// itself, and parsing is refused. The type checker does not see this file in its place.
function refuse(): never {
  throw new Error("the page checks no schemas");
}

const REFUSED: ReadonlySet<PropertyKey> = new Set(["parse", "safeParse", "parseAsync", "safeParseAsync", "toJSONSchema"]);

const schema: (...ignored: unknown[]) => unknown = new Proxy(() => schema, {
  get: (_target, name) => (REFUSED.has(name) ? refuse : schema),
});

export const z = schema;
