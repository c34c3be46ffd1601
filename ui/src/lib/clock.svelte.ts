// The time, ticking once a second, and only while something on the page shows it.
import { createSubscriber } from "svelte/reactivity";

const onTick = createSubscriber((update) => {
  const timer = setInterval(update, 1000);
  return () => clearInterval(timer);
});

/** Milliseconds since the epoch; whoever reads it in markup is drawn anew every second. */
export function now(): number {
  onTick();
  return Date.now();
}
