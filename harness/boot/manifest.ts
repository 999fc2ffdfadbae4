// What a worker's iii.worker.yaml says for the banner. The boot prints it and knows no worker by name.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";

/** One line of the banner; shown while the worker is ready. */
export const BannerLine = z.strictObject({
  row: z.string().min(1),
  /** `${http_url}`, `${page_key}`, `${bus_url}` and `${config.<key>}` are filled in; a line with one that is not set is left out. */
  text: z.string().min(1),
  /** Shown only when the worker's configuration has these values. */
  when: z.record(z.string(), z.unknown()).optional(),
  /** Something that a person should not overlook. */
  warn: z.boolean().default(false),
});
export type BannerLine = z.infer<typeof BannerLine>;

const Manifest = z.object({ banner: z.array(BannerLine).default([]) });

export interface BannerFacts {
  readonly http_url: string;
  readonly bus_url: string;
  /** Opens the page as the operator. */
  readonly page_key: string;
  readonly config: Readonly<Record<string, unknown>>;
}

export interface ShownLine {
  readonly row: string;
  readonly text: string;
  readonly warn: boolean;
}

function filled(text: string, { http_url, bus_url, page_key, config }: BannerFacts): string | undefined {
  const values: Readonly<Record<string, unknown>> = { http_url, bus_url, page_key };
  let whole = true;
  const result = text.replace(/\$\{([^}]+)\}/g, (_found, name: string) => {
    const value = name.startsWith("config.") ? config[name.slice(7)] : values[name];
    whole &&= value !== undefined;
    return String(value);
  });
  return whole ? result : undefined;
}

function isMeant(line: BannerLine, config: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(line.when ?? {}).every(([key, value]) => config[key] === value);
}

/** The lines to show. Pure. */
export function shownLines(lines: readonly BannerLine[], facts: BannerFacts): ShownLine[] {
  return lines
    .filter((line) => isMeant(line, facts.config))
    .flatMap(({ row, text, warn }) => {
      const shown = filled(text, facts);
      return shown === undefined ? [] : [{ row, text: shown, warn }];
    });
}

/** The lines of the manifest in this folder. No manifest, or one that cannot be read, says nothing: a banner is no reason to fail. */
export function bannerLines(folder: string): readonly BannerLine[] {
  try {
    return Manifest.parse(parse(readFileSync(join(folder, "iii.worker.yaml"), "utf8"))).banner;
  } catch {
    return [];
  }
}
