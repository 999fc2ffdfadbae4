// Hands bindings of built-in trigger types to the built-in that provides the type, with their config checked.
import { BusError, issueText } from "@iii/sdk";
import type { BindingData } from "../core/effects.ts";
import type { Binding, TriggerTypeSpec } from "../ports/host.ts";

export class BuiltinTypes {
  readonly #specs = new Map<string, TriggerTypeSpec>();
  readonly #bound = new Map<string, Binding>();

  add(spec: TriggerTypeSpec): void {
    this.#specs.set(spec.id, spec);
  }

  get(id: string): TriggerTypeSpec | undefined {
    return this.#specs.get(id);
  }

  /** @throws BusError `trigger_registration_failed` naming the wrong field, or whatever the built-in refused it with. */
  bind(data: BindingData): void {
    const spec = this.#specs.get(data.trigger_type);
    if (spec === undefined) return;
    const parsed = spec.config.safeParse(data.config ?? {});
    if (!parsed.success) {
      throw new BusError("trigger_registration_failed", `'${data.trigger_type}': ${issueText(parsed.error, "the config")}`);
    }
    const binding: Binding = { ...data, config: parsed.data };
    spec.bind(binding);
    this.#bound.set(data.id, binding);
  }

  unbind(data: BindingData): void {
    const binding = this.#bound.get(data.id);
    if (binding === undefined) return;
    this.#bound.delete(data.id);
    this.#specs.get(data.trigger_type)?.unbind(binding);
  }
}
