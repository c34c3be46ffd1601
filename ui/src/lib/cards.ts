// Moving the focus over a page's cards by keyboard.

export function moveFocus(page: HTMLElement, by: 1 | -1): void {
  const cards = [...page.querySelectorAll<HTMLElement>("[data-card]")];
  const at = cards.findIndex((card) => card.contains(document.activeElement));
  cards[Math.min(Math.max(at + by, 0), cards.length - 1)]?.focus();
}
