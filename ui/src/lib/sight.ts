// Whether something has been in view yet: what costs a call is asked for then, and not before.
import type { Attachment } from "svelte/attachments";

const waiting = new Map<Element, () => void>();
let observer: IntersectionObserver | null = null;

/** One observer for the whole page: each of its own would cost as much as what it saves. */
function watch(): IntersectionObserver {
  observer ??= new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) seen(entry.target);
  });
  return observer;
}

function seen(element: Element): void {
  const tell = waiting.get(element);
  forget(element);
  tell?.();
}

function forget(element: Element): void {
  waiting.delete(element);
  observer?.unobserve(element);
  if (waiting.size === 0) observer = null;
}

/** Tells once, when the element comes into view; at once where nobody can say. */
export function onceInSight(tell: () => void): Attachment {
  return (element) => {
    if (typeof IntersectionObserver === "undefined") {
      tell();
      return;
    }
    waiting.set(element, tell);
    watch().observe(element);
    return () => forget(element);
  };
}
