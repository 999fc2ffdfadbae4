// ${NAME} in scalar values of a parsed document. Works on nodes after parsing, so that a value can never become YAML.

export type Env = Readonly<Record<string, string | undefined>>;

export interface Interpolated {
  readonly text: string;
  /** The whole scalar was one placeholder: its value takes the type that stands there. */
  readonly lone: boolean;
  readonly problem?: { message: string; hint: string };
}

// $${ is a literal "${"; otherwise ${NAME}, ${NAME:-default}, ${NAME:?message} and, as others write it, ${NAME:default}.
const PLACEHOLDER = /\$\$\{|\$\{([^}]*)\}/g;
const INSIDE = /^([A-Za-z_][A-Za-z0-9_]*)(?::([-?]?)([\s\S]*))?$/;

interface Value {
  text: string;
  problem?: { message: string; hint: string };
}

function lookUp(inside: string, env: Env): Value {
  const match = INSIDE.exec(inside);
  if (match === null) {
    return {
      text: "",
      problem: { message: `'\${${inside}}' is not a placeholder`, hint: "write ${NAME} or ${NAME:-default}; $${ for a literal ${" },
    };
  }
  const [, name = "", operator, rest] = match;
  const value = env[name];
  // As in a shell, ":" treats an empty variable as an unset one.
  if (value !== undefined && (value !== "" || rest === undefined)) return { text: value };
  if (rest !== undefined && operator !== "?") return { text: rest };
  const said = rest === undefined || rest === "" ? `${name} is not set` : rest;
  return { text: "", problem: { message: said, hint: `set ${name} in the environment, or write \${${name}:-default}` } };
}

/** Replaces the placeholders of one scalar. Never throws: what is wrong is in `problem`. */
export function interpolate(source: string, env: Env): Interpolated {
  let problem: Interpolated["problem"];
  let count = 0;
  const text = source.replace(PLACEHOLDER, (_whole: string, inside: string | undefined) => {
    if (inside === undefined) return "${";
    count += 1;
    const value = lookUp(inside, env);
    problem ??= value.problem;
    return value.text;
  });
  const lone = count === 1 && /^\$\{[^}]*\}$/.test(source);
  return problem === undefined ? { text, lone } : { text, lone, problem };
}
