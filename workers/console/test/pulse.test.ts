import fc from "fast-check";
import { expect, test } from "vitest";
import { ANSWER_MS, dialled, heard, nextPulse, OPEN_MS, type Pulse, QUIET_MS } from "../ui/src/model/pulse.ts";

const open = heard(dialled(0), 0);
const asked: Pulse = { ...open, asked_at: QUIET_MS };

test.each<[string, Pulse, number, boolean, string]>([
  ["a socket that talks is left alone", heard(open, 9_000), 9_000 + QUIET_MS - 1, false, "wait"],
  ["one that is quiet for long is asked", open, QUIET_MS, false, "ask"],
  ["a page that wakes up asks at once", open, 1, true, "ask"],
  ["one that was asked has a while to answer", asked, QUIET_MS + ANSWER_MS - 1, false, "wait"],
  ["a second doubt does not ask again", asked, QUIET_MS + 1, true, "wait"],
  ["one that does not answer is dropped", asked, QUIET_MS + ANSWER_MS, false, "drop"],
  ["an answer makes it a living one", heard(asked, QUIET_MS + 10), QUIET_MS + ANSWER_MS, false, "wait"],
  ["one that does not open is given a while", dialled(0), OPEN_MS - 1, true, "wait"],
  ["and is dropped then", dialled(0), OPEN_MS, false, "drop"],
])("K12.1 %s", (_title, pulse, now, doubt, expected) => {
  expect(nextPulse(pulse, now, doubt)).toBe(expected);
});

test("K12.1 whatever comes and when it stops coming, silence ends in a drop within a bounded time", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 30_000 }), { maxLength: 20 }), fc.boolean(), (waits, opens) => {
      let now = 0;
      let pulse = dialled(0);
      for (const wait of opens ? waits : []) {
        now += wait;
        pulse = heard(pulse, now);
      }
      const silence = now;
      for (let next = nextPulse(pulse, now, false); next !== "drop"; next = nextPulse(pulse, now, false)) {
        if (next === "ask") pulse = { ...pulse, asked_at: now };
        now += 1_000;
        expect(now - silence).toBeLessThanOrEqual(QUIET_MS + ANSWER_MS + OPEN_MS + 3_000);
      }
    }),
  );
});
