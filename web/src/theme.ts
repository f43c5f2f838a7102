/* The theme: light, dark, or the system's; and the colours for a canvas, read from the style
 * sheet. */
import { effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
const KEY = "assay.theme";
const ORDER: Theme[] = ["auto", "light", "dark"];
const system = window.matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme {
  try {
    return ORDER.find((t) => t === localStorage.getItem(KEY)) ?? "auto";
  } catch {
    return "auto";
  }
}

/** "auto" until startTheme(). */
export const theme = signal<Theme>("auto");
/** The theme that is shown now; canvases are drawn again when it changes. */
export const shown = signal<"light" | "dark">("light");

/** Colours of the theme that is shown: to ask for one takes as long as to draw a hundred points. */
const known = new Map<string, string>();

function apply(): void {
  const now = theme.value === "auto" ? (system.matches ? "dark" : "light") : theme.value;
  document.documentElement.dataset.theme = now;
  known.clear();
  shown.value = now; // whoever draws anew then finds its colours
}

export function startTheme(): void {
  theme.value = stored();
  effect(apply);
  system.addEventListener("change", apply);
}

export function nextTheme(): void {
  theme.value = ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length] ?? "auto";
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // Storage is switched off: the choice lives as long as the page.
  }
}

/** The value of a custom property of the style sheet, such as colour("--accent"). */
export function colour(name: string): string {
  const found = known.get(name) ?? getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  if (found !== "") known.set(name, found); // else the style sheet is not there yet
  return found;
}
