// One trace as a tree with one root and no orphan. Pure.
import type { SpanNode, StoredSpan } from "./contract.ts";
import { LOST } from "./spans.ts";

const WRAPPERS: ReadonlySet<string> = new Set(["state_triggers", "stream_triggers"]);

/** Stands for a parent of which nothing arrived: recorded by nobody, or lost with its process. */
function placeholder(span_id: string, children: readonly SpanNode[]): SpanNode {
  const first = children[0];
  return {
    trace_id: first?.trace_id ?? "",
    span_id,
    parent_span_id: null,
    name: "(not recorded)",
    start_time_unix_nano: Math.min(...children.map((child) => child.start_time_unix_nano)),
    end_time_unix_nano: Math.max(...children.map((child) => child.end_time_unix_nano)),
    status: "unset",
    attributes: [[LOST, "true"]],
    service_name: first?.service_name ?? "unknown",
    events: [],
    links: [],
    children: [...children],
  };
}

const byStart = (a: SpanNode, b: SpanNode): number => a.start_time_unix_nano - b.start_time_unix_nano;

/** Adds every node below `top` to `reached`, sorting children by start and leaving out wrappers around nothing. */
function settle(top: SpanNode, reached: Set<SpanNode>): void {
  const stack = [top];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (reached.has(node)) continue;
    reached.add(node);
    node.children = node.children.filter((child) => child.children.length > 0 || !WRAPPERS.has(child.name)).sort(byStart);
    stack.push(...node.children);
  }
}

export function buildTree(spans: readonly StoredSpan[]): SpanNode[] {
  const nodes = new Map<string, SpanNode>(spans.map((span) => [span.span_id, { ...span, children: [] }]));
  const roots: SpanNode[] = [];
  const orphans = new Map<string, SpanNode[]>();
  for (const node of nodes.values()) {
    const parent = node.parent_span_id;
    if (parent === null) roots.push(node);
    else if (nodes.has(parent)) nodes.get(parent)?.children.push(node);
    else orphans.set(parent, [...(orphans.get(parent) ?? []), node]);
  }
  const adopted = [...orphans].map(([parent, children]) => placeholder(parent, children)).sort(byStart);
  const tops = adopt(roots.sort(byStart), adopted);
  const reached = new Set<SpanNode>();
  for (const top of tops) settle(top, reached);
  for (const node of nodes.values()) {
    if (reached.has(node) || dangles(node, tops)) continue;
    cutLoose(node, nodes, tops);
    settle(node, reached);
  }
  return tops;
}

/** A wrapper that was left out on purpose is not lost. */
const dangles = (node: SpanNode, tops: readonly SpanNode[]): boolean => tops.length > 0 && node.children.length === 0;

/** Spans that name each other as parents hang from nothing: the loop is cut at `node`, which hangs from the root instead. */
function cutLoose(node: SpanNode, nodes: ReadonlyMap<string, SpanNode>, tops: SpanNode[]): void {
  const parent = nodes.get(node.parent_span_id ?? "");
  if (parent !== undefined) parent.children = parent.children.filter((child) => child !== node);
  const [root] = tops;
  node.parent_span_id = root?.span_id ?? null;
  if (root === undefined) tops.push(node);
  else root.children.push(node);
}

/** Under the true root if there is one, else under the earliest placeholder. */
function adopt(roots: SpanNode[], adopted: SpanNode[]): SpanNode[] {
  const [root, ...more] = roots.length > 0 ? [...roots, ...adopted] : adopted;
  if (root === undefined) return [];
  const others = more.filter((node) => !roots.includes(node));
  for (const other of others) {
    other.parent_span_id = root.span_id;
    root.children.push(other);
  }
  return [root, ...more.filter((node) => roots.includes(node))];
}
