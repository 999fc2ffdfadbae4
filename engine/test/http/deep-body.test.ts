import { expect, test } from "vitest";
import { httpBench } from "./bench.ts";

const deep = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;

test("K4.4 a body nested too deep is a 400 that says so, a result nested too deep an error, and the engine goes on", async () => {
  const on = await httpBench({});
  try {
    const iii = on.connect();
    const got: unknown[] = [];
    iii.registerFunction("deep::take", (input) => {
      got.push((input as { body: unknown }).body);
      return { body: { levels: got.length } };
    });
    iii.registerFunction("deep::give", () => ({ body: JSON.parse(deep(2_000)) as unknown }));
    iii.registerTrigger({ type: "http", function_id: "deep::take", config: { api_path: "/take", http_method: "POST" } });
    iii.registerTrigger({ type: "http", function_id: "deep::give", config: { api_path: "/give" } });
    await iii.trigger("engine::registered-triggers::list", {});
    const post = (body: string) => fetch(`${on.url}/take`, { method: "POST", headers: { "content-type": "application/json" }, body });
    for (const levels of [513, 20_000, 500_000]) {
      const response = await post(deep(levels));
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ error: { code: "payload_too_deep" } });
    }
    expect(got).toEqual([]);
    expect((await post(deep(512))).status).toBe(200);
    expect(got).toEqual([JSON.parse(deep(512))]);
    expect((await fetch(`${on.url}/give`)).status).toBeGreaterThanOrEqual(400);
    const odd = '{"__proto__":{"constructor":1}}';
    await post(odd);
    expect(JSON.stringify(got[1])).toBe(odd);
  } finally {
    await on.stop();
  }
});
