/* The bearer token of the user, and whether the server refused it.
 *
 * The token comes from the fragment `#token=…` of the address that `assay up` prints (a fragment
 * never reaches a server or its log), or from the login form. It is removed from the address at
 * once. It is stored in localStorage, so that a second tab is signed in, too, or in sessionStorage
 * when the user wants to be signed out when the tab closes. */
import { signal } from "@preact/signals";

const KEY = "assay.token";

function storedToken(): string | null {
  try {
    return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);
  } catch {
    return null; // storage is switched off: the token lives as long as the page
  }
}

/** Null until startSession(). */
export const token = signal<string | null>(null);

/** Why the login form is shown although there was a token; null: no reason to show. */
export const refusal = signal<string | null>(null);

export function signIn(text: string, remember: boolean): void {
  refusal.value = null;
  try {
    signOutOfStorage();
    (remember ? localStorage : sessionStorage).setItem(KEY, text);
  } catch {
    // Storage is switched off or full: signed in for this page only.
  }
  token.value = text;
}

export function signOut(reason: string | null = null): void {
  try {
    signOutOfStorage();
  } catch {
    // Nothing was stored.
  }
  refusal.value = reason;
  token.value = null;
}

function signOutOfStorage(): void {
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
}

/** Take the stored token, and that of the address. */
export function startSession(): void {
  token.value = storedToken();
  takeTokenFromAddress();
  // Opening another address with a token in this tab changes only the fragment.
  window.addEventListener("hashchange", takeTokenFromAddress);
}

/** Remove `#token=T` (or `#token=T&to=/sweeps/x`) from the address and sign in with it. */
function takeTokenFromAddress(): void {
  if (!location.hash.startsWith("#token=")) return;
  const given = new URLSearchParams(location.hash.slice(1));
  const to = given.get("to") ?? "";
  history.replaceState(null, "", to.startsWith("/") ? `#${to}` : "#/sweeps");
  const text = (given.get("token") ?? "").trim();
  if (text !== "") signIn(text, true);
}
