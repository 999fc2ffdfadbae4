// Reads the text of iii-permissions.yaml into rules. Pure. Every fault of the file is reported at once, each with line and column; what
// is not understood is never passed over, for a rule without its constraint is a wider rule.
import { nearest } from "@iii/sdk";
import { LineCounter } from "yaml";
import { MAX_RULE_ID } from "./contract.ts";
import { covers, fieldFault, functionDoubt, functionFault, regexDoubt, regexFault } from "./pattern-faults.ts";
import { type Constraint, compileRules, type RuleSet, type RuleSource } from "./rules.ts";
import { type Entry, type Fault, Faults, type Offset, readYaml, type Tree, type TreeMap, toValue } from "./strict-yaml.ts";

export type { Fault } from "./strict-yaml.ts";
export type LoadResult =
  | { readonly ok: true; readonly rules: RuleSet; readonly warnings: readonly Fault[] }
  | { readonly ok: false; readonly faults: readonly Fault[]; readonly warnings: readonly Fault[] };

const FILE_KEYS = ["version", "rules"];
const RULE_KEYS = ["function", "action", "rule_id", "args"];
const OPERATORS = ["equals", "matches", "anything"];

/** Parses and compiles the file's text. */
export function loadRules(text: string): LoadResult {
  const reader = new Reader(text);
  const sources = reader.read();
  const faults = reader.faults.list;
  const warnings = reader.warnings.list;
  if (faults.length > 0) return { ok: false, faults, warnings };
  return { ok: true, rules: compileRules(sources), warnings };
}

/** `file:line:column: message`, one per line. */
export function describeFaults(file: string, faults: readonly Fault[]): string {
  return faults.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`).join("\n");
}

type Placed = RuleSource & { readonly at: Offset };
type Action = RuleSource["action"];

class Reader {
  readonly faults: Faults;
  readonly warnings: Faults;
  readonly #lines = new LineCounter();
  readonly #text: string;
  readonly #ids = new Set<string>();

  constructor(text: string) {
    this.#text = text;
    this.faults = new Faults(this.#lines);
    this.warnings = new Faults(this.#lines);
  }

  read(): readonly RuleSource[] {
    const root = readYaml(this.#text, this.#lines, this.faults);
    if (root === null) {
      if (this.faults.list.length === 0) this.#fault(0, "the file holds no rules; if everything shall ask, write `rules: []`");
      return [];
    }
    if (root.kind === "wrong") return [];
    if (root.kind !== "map") return this.#fault(root.at, "expected a map with `version` and `rules`");
    this.#known(root, FILE_KEYS);
    const version = child(root, "version");
    if (version !== undefined && !(version.kind === "scalar" && version.value === 1)) this.#fault(version.at, "`version` must be 1");
    const rules = child(root, "rules");
    if (rules === undefined) return this.#fault(root.at, "`rules` is missing; if everything shall ask, write `rules: []`");
    if (rules.kind === "wrong") return [];
    if (rules.kind !== "list") return this.#fault(rules.at, "`rules` must be a list; if everything shall ask, write `rules: []`");
    const read = rules.items.flatMap((item) => this.#rule(item));
    this.#unreachable(read);
    return read;
  }

  #rule(node: Tree): readonly Placed[] {
    if (node.kind === "wrong") return [];
    if (node.kind === "map") return this.#objectRule(node);
    if (node.kind !== "scalar" || typeof node.value !== "string")
      return this.#fault(node.at, "a rule is a function pattern, '!' and a pattern, or a map with `function` and `action`");
    const deny = node.value.startsWith("!");
    const pattern = deny ? node.value.slice(1) : node.value;
    if (deny && pattern === "") return this.#fault(node.at, "'!' needs a function pattern behind it");
    this.#pattern(pattern, node.at);
    return [{ pattern, action: deny ? "deny" : "allow", rule_id: this.#ruleId(node.at, pattern), constraints: [], at: node.at }];
  }

  #pattern(pattern: string, at: Offset): void {
    const fault = functionFault(pattern);
    if (fault !== undefined) this.#fault(at, fault);
    const doubt = functionDoubt(pattern);
    if (doubt !== undefined) this.warnings.add(at, doubt);
  }

  #objectRule(node: TreeMap): readonly Placed[] {
    this.#known(node, RULE_KEYS);
    const given = child(node, "function");
    const pattern = textOf(given);
    if (given === undefined || pattern === "") this.#fault(given?.at ?? node.at, "a rule needs `function`, a non-empty pattern");
    else if (pattern === undefined) this.#unless(given, "`function` must be one pattern, a text");
    else this.#pattern(pattern, given.at);
    const action = this.#action(node);
    const constraints = this.#constraints(child(node, "args"), action);
    const { id, idText } = this.#givenId(node);
    if (action === undefined || pattern === undefined) return [];
    return [{ pattern, action, rule_id: this.#ruleId((id ?? node).at, idText ?? pattern), constraints, at: node.at }];
  }

  #givenId(node: TreeMap): { id: Tree | undefined; idText: string | undefined } {
    const id = child(node, "rule_id");
    const idText = textOf(id);
    if (id !== undefined && !idText) this.#unless(id, "`rule_id` must be a non-empty text");
    if (id !== undefined && idText !== undefined && idText.length > MAX_RULE_ID) {
      this.#fault(id.at, `\`rule_id\` is longer than ${MAX_RULE_ID} characters`);
    }
    return { id, idText };
  }

  #action(node: TreeMap): Action | undefined {
    const given = child(node, "action");
    const action = textOf(given);
    if (action === "allow" || action === "deny") return action;
    this.#unless(given ?? node, "`action` must be allow or deny");
    return undefined;
  }

  #constraints(args: Tree | undefined, action: Action | undefined): readonly Constraint[] {
    if (args === undefined || args.kind === "wrong") return [];
    if (args.kind !== "map" || args.entries.length === 0)
      return this.#fault(args.at, "`args` must be a map of argument names; to constrain nothing, leave it out");
    return args.entries.flatMap((entry) => this.#tests(entry, action));
  }

  #tests({ key: field, at, value }: Entry, action: Action | undefined): readonly Constraint[] {
    const wrong = fieldFault(field);
    if (wrong !== undefined) this.#fault(at, wrong);
    if (value.kind === "wrong") return [];
    if (value.kind === "map" && value.entries.length > 0) return value.entries.flatMap((test) => this.#constraint(field, test, action));
    return this.#fault(value.at, `argument '${field}' needs \`equals\`, \`matches\` or \`anything: true\``);
  }

  #constraint(field: string, { key, at, value }: Entry, action: Action | undefined): readonly Constraint[] {
    if (value.kind === "wrong") return [];
    if (value.kind === "scalar" && value.cut)
      return this.#fault(value.at, "what stands behind # is a comment: quote the value, or put the comment on a line of its own");
    if (key === "equals") return [{ field, operator: key, value: toValue(value) }];
    if (key === "matches") return this.#matches(field, value, action);
    if (key !== "anything")
      return this.#fault(value.at, `unknown constraint '${key}' on '${field}'${meant(key, OPERATORS)}: use \`equals\` or \`matches\``);
    if (value.kind === "scalar" && value.value === true) return [{ field, operator: key, value: true }];
    return this.#fault(at, "`anything` can only be true");
  }

  #matches(field: string, value: Tree, action: Action | undefined): readonly Constraint[] {
    const pattern = textOf(value);
    if (pattern === undefined) return this.#fault(value.at, `\`matches\` of '${field}' must be a text`);
    const wrong = regexFault(pattern, action);
    if (wrong !== undefined) return this.#fault(value.at, `\`matches\` of '${field}': ${wrong}`);
    const doubt = action === "allow" ? regexDoubt(pattern) : undefined;
    if (doubt !== undefined) this.warnings.add(value.at, `\`matches\` of '${field}': ${doubt}`);
    return [{ field, operator: "matches", value: pattern }];
  }

  /** A rule behind one that takes all its calls never decides: a denial there would deny nothing. */
  #unreachable(rules: readonly Placed[]): void {
    for (const [i, rule] of rules.entries()) {
      const first = rules.slice(0, i).find(({ pattern, constraints }) => constraints.length === 0 && covers(pattern, rule.pattern));
      if (first === undefined) continue;
      const line = this.#lines.linePos(first.at).line;
      this.#fault(
        rule.at,
        `'${rule.pattern}' is never reached: '${first.pattern}' in line ${line} decides all its calls; put the narrower rule first`,
      );
    }
  }

  #ruleId(at: Offset, id: string): string {
    if (this.#ids.has(id)) this.warnings.add(at, `rule_id '${id}' is used twice`);
    this.#ids.add(id);
    return id;
  }

  #known(map: TreeMap, keys: readonly string[]): void {
    for (const { key, at } of map.entries)
      if (!keys.includes(key)) this.#fault(at, `unknown key '${key}'${meant(key, keys)}; known are ${keys.join(", ")}`);
  }

  #unless(node: Tree, message: string): void {
    if (node.kind !== "wrong") this.#fault(node.at, message);
  }

  #fault(at: Offset, message: string): readonly never[] {
    this.faults.add(at, message);
    return [];
  }
}

function textOf(node: Tree | undefined): string | undefined {
  return node?.kind === "scalar" && typeof node.value === "string" ? node.value : undefined;
}

function child(map: TreeMap, key: string): Tree | undefined {
  return map.entries.find((entry) => entry.key === key)?.value;
}

function meant(word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  return near === undefined ? "" : ` (did you mean '${near}'?)`;
}
