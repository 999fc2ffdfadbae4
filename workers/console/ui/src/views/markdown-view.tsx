// Shows a model's markdown. The renderer comes as a chunk of its own; until it is there, the text stands as it is.
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";

type Renderer = typeof import("../model/markdown.ts");
const renderer = signal<Renderer | null>(null);
import("../model/markdown.ts").then(
  (loaded) => {
    renderer.value = loaded;
  },
  () => undefined, // the plain text stays
);

export function MarkdownView({ text }: { text: string }) {
  const render = renderer.value;
  const nodes = useMemo(() => render?.markdown(text), [render, text]);
  return <div class={nodes === undefined ? "md md-plain" : "md"}>{nodes ?? text}</div>;
}

/** The same for a text that grows: finished blocks are parsed once. */
export function GrowingMarkdown({ text }: { text: string }) {
  const render = renderer.value;
  if (render === null) return <div class="md md-plain">{text}</div>;
  const { done, tail } = render.splitStable(text);
  return (
    <>
      {done.map((block, index) => (
        <MarkdownView key={index} text={block} />
      ))}
      <MarkdownView key="tail" text={tail} />
    </>
  );
}
