// Reads the text of iii-permissions.yaml into rules. Pure. Every fault of the file is reported at once, each with line and column.
import { RE2JS } from "re2js";
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type YAMLMap } from "yaml";
import { type Constraint, compileRules, type RuleSet, type RuleSource } from "./rules.ts";

export interface Fault {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}
export type LoadResult =
  | { readonly ok: true; readonly rules: RuleSet; readonly warnings: readonly Fault[] }
  | { readonly ok: false; readonly faults: readonly Fault[]; readonly warnings: readonly Fault[] };

const RULE_KEYS = new Set(["function", "action", "rule_id", "args"]);
const MAX_PATTERN_LENGTH = 1_000;

/** Parses and compiles the file's text. */
export function loadRules(text: string): LoadResult {
  const reader = new Reader(text);
  const sources = reader.read();
  const { faults, warnings } = reader;
  if (faults.length > 0) return { ok: false, faults, warnings };
  return { ok: true, rules: compileRules(sources), warnings };
}

/** `file:line:column: message`, one per line. */
export function describeFaults(file: string, faults: readonly Fault[]): string {
  return faults.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`).join("\n");
}

type Range = { range?: [number, number, number] | null | undefined };

class Reader {
  readonly faults: Fault[] = [];
  readonly warnings: Fault[] = [];
  readonly #lines = new LineCounter();
  readonly #document: Document.Parsed;
  readonly #source: string;
  readonly #ids = new Set<string>();

  constructor(text: string) {
    this.#source = text;
    this.#document = parseDocument(text, { lineCounter: this.#lines });
  }

  read(): readonly RuleSource[] {
    for (const error of this.#document.errors) this.#at(this.faults, error.pos[0], error.message.split("\n")[0] ?? "not YAML");
    if (this.faults.length > 0) return [];
    const root = this.#document.contents;
    if (root === null || (isScalar(root) && root.value === null)) return [];
    if (!isMap(root)) return this.#fault(root, "expected a map with `version` and `rules`");
    this.#checkVersion(root);
    const rules = this.#child(root, "rules");
    if (rules === undefined || (isScalar(rules) && rules.value === null)) return [];
    if (!isSeq(rules)) return this.#fault(rules, "`rules` must be a list");
    return rules.items.flatMap((item) => this.#rule(this.#node(item) ?? rules));
  }

  #checkVersion(root: YAMLMap): void {
    const version = this.#child(root, "version");
    if (version !== undefined && !(isScalar(version) && version.value === 1)) this.#fault(version, "`version` must be 1");
    this.#warnUnknown(root, new Set(["version", "rules"]));
  }

  #rule(node: Node): readonly RuleSource[] {
    if (isMap(node)) return this.#objectRule(node);
    if (node.tag?.startsWith("!") && !node.tag.startsWith("!!")) {
      // The range is the value's: of an empty one, it starts behind the tag.
      const start = this.#source.lastIndexOf(node.tag, node.range?.[0]);
      return this.#fault({ range: [start, start, start] }, `a denial must be quoted ('${node.tag}'): a bare ! is a YAML tag`);
    }
    if (!isScalar(node) || typeof node.value !== "string") {
      return this.#fault(node, "a rule is a function pattern, '!' and a pattern, or a map with `function` and `action`");
    }
    const deny = node.value.startsWith("!");
    const pattern = (deny ? node.value.slice(1) : node.value).trim();
    if (pattern === "") return this.#fault(node, deny ? "'!' needs a function pattern behind it" : "an empty rule");
    return [{ pattern, action: deny ? "deny" : "allow", rule_id: this.#ruleId(node, pattern), constraints: [] }];
  }

  #objectRule(node: YAMLMap): readonly RuleSource[] {
    this.#warnUnknown(node, RULE_KEYS);
    const pattern = this.#text(node, "function")?.trim();
    const action = this.#action(node);
    const constraints = this.#constraints(node);
    if (pattern === undefined || pattern === "") {
      return this.#fault(this.#child(node, "function") ?? node, "a rule needs `function`, a non-empty pattern");
    }
    const idNode = this.#child(node, "rule_id");
    const given = this.#text(node, "rule_id");
    if (idNode !== undefined && !given) return this.#fault(idNode, "`rule_id` must be a non-empty text");
    if (action === undefined) return [];
    return [{ pattern, action, rule_id: this.#ruleId(idNode ?? node, given ?? pattern), constraints }];
  }

  #action(node: YAMLMap): "allow" | "deny" | undefined {
    const action = this.#text(node, "action");
    if (action === "allow" || action === "deny") return action;
    this.#fault(this.#child(node, "action") ?? node, "`action` must be allow or deny");
    return undefined;
  }

  #constraints(rule: YAMLMap): readonly Constraint[] {
    const args = this.#child(rule, "args");
    if (args === undefined) return [];
    if (!isMap(args)) return this.#fault(args, "`args` must be a map of argument names");
    return args.items.flatMap((pair): readonly Constraint[] => {
      const field = String(isScalar(pair.key) ? pair.key.value : pair.key);
      const node = this.#node(pair.value) ?? args;
      if (!isMap(node) || node.items.length === 0) return this.#fault(node, `argument '${field}' needs \`equals\` or \`matches\``);
      return node.items.flatMap((test) =>
        this.#constraint(field, String(isScalar(test.key) ? test.key.value : test.key), this.#node(test.value), node),
      );
    });
  }

  #constraint(field: string, operator: string, value: Node | undefined, at: Node): readonly Constraint[] {
    if (operator === "equals") return [{ field, operator, value: value === undefined ? null : value.toJS(this.#document) }];
    if (operator !== "matches")
      return this.#fault(value ?? at, `unknown constraint '${operator}' on '${field}': use \`equals\` or \`matches\``);
    const pattern = isScalar(value) ? value.value : undefined;
    if (typeof pattern !== "string") return this.#fault(value ?? at, `\`matches\` of '${field}' must be a text`);
    const wrong = regexFault(pattern);
    if (wrong !== undefined) return this.#fault(value ?? at, `\`matches\` of '${field}': ${wrong}`);
    return [{ field, operator, value: pattern }];
  }

  #ruleId(node: Node, id: string): string {
    if (this.#ids.has(id)) this.#warn(node, `rule_id '${id}' is used twice`);
    this.#ids.add(id);
    return id;
  }

  #warnUnknown(map: YAMLMap, known: ReadonlySet<string>): void {
    for (const { key } of map.items) {
      const name = isScalar(key) ? String(key.value) : "?";
      if (!known.has(name)) this.#warn(isScalar(key) ? key : map, `unknown key '${name}' is ignored`);
    }
  }

  #text(map: YAMLMap, key: string): string | undefined {
    const node = this.#child(map, key);
    return isScalar(node) && typeof node.value === "string" ? node.value : undefined;
  }

  #child(map: YAMLMap, key: string): Node | undefined {
    return this.#node(map.get(key, true));
  }

  #node(value: unknown): Node | undefined {
    if (isAlias(value)) return value.resolve(this.#document);
    return isScalar(value) || isMap(value) || isSeq(value) ? value : undefined;
  }

  #fault(node: Range, message: string): readonly never[] {
    this.#at(this.faults, node.range?.[0] ?? 0, message);
    return [];
  }

  #warn(node: Range, message: string): void {
    this.#at(this.warnings, node.range?.[0] ?? 0, message);
  }

  #at(list: Fault[], offset: number, message: string): void {
    const { line, col } = this.#lines.linePos(offset);
    list.push({ line, column: col, message });
  }
}

function regexFault(pattern: string): string | undefined {
  if (pattern.length > MAX_PATTERN_LENGTH) return `longer than ${MAX_PATTERN_LENGTH} characters`;
  try {
    RE2JS.compile(pattern);
    return undefined;
  } catch (cause) {
    return cause instanceof Error ? cause.message : "not a regular expression";
  }
}
