/* Sign in with a token. The token is tested before it is stored. */
import { useRef, useState } from "preact/hooks";
import { messageOf, send } from "../api/http";
import { refusal, signIn, signOut, token } from "../session";

export function LoginView() {
  const [busy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const remember = useRef<HTMLInputElement>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    const text = input.current?.value.trim() ?? "";
    if (text === "") return;
    const keep = remember.current?.checked ?? false;
    setBusy(true);
    try {
      await send("/v1/sweeps?page_size=1", { headers: { Authorization: `Bearer ${text}` } });
      if (token.value === null) signIn(text, keep); // otherwise an address with a token has signed in meanwhile
    } catch (error) {
      if (token.value === null) signOut(messageOf(error));
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <form class="panel" onSubmit={submit}>
        <h1>Sign in</h1>
        <p>This server asks for a token. <code>assay up</code> prints an address that holds one; <code>assay token create</code> makes more.</p>
        <label for="token">Token</label>
        <input id="token" ref={input} type="password" autocomplete="current-password" spellcheck={false} required autofocus aria-describedby={refusal.value ? "refusal" : undefined} />
        {refusal.value !== null && <p id="refusal" class="bad" role="alert">{refusal.value}</p>}
        <label class="toggle"><input ref={remember} type="checkbox" checked /> Stay signed in on this computer</label>
        <button type="submit" class="primary" disabled={busy}>{busy ? "Trying…" : "Sign in"}</button>
      </form>
    </main>
  );
}
