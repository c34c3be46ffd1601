// Text that leaves the window by the clipboard. Files are the backend's: a page can write none.

/** Rejects where the window may not write to the clipboard. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch (refused) {
    // Some webviews have only the old way, or ask for a permission that nobody can give.
    if (!copiedTheOldWay(text)) throw refused;
  }
}

function copiedTheOldWay(text: string): boolean {
  if (typeof document.execCommand !== "function") return false;
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.style.cssText = "position: fixed; opacity: 0;";
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return copied;
}
