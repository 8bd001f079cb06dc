// The page of who has no session: log in at the issuer, or with a token.
import {html, nothing} from "../vendor/lit-html/lit-html.js";
import {failure} from "./parts.js";

/** @param {{login: {oidc: boolean, error?: Error, busy?: boolean}, act: {logIn: (event: SubmitEvent) => void}}} state */
export function login({login, act}) {
  return html`<section class="login"><h1>Log in</h1>
    ${login.oidc ? html`<p><a class="button primary" href="login">Log in with your organization</a></p><p class="hint">Or with a token:</p>` : nothing}
    <form @submit=${act.logIn}>
      <label for="token">Token</label>
      <input id="token" name="token" type="password" autocomplete="off" spellcheck="false" required>
      <button class=${login.oidc ? "" : "primary"} ?disabled=${login.busy}>Log in</button>
      ${failure(login.error)}
    </form>
    <p class="hint">In a terminal, <code>kubectl create token NAME -n NAMESPACE --duration 8h</code> prints the token of a service account. The session ends with the token, or after 12 hours; no page can read it.</p>
    <p class="hint">Without a token: <code>kubectl federation console</code> opens these pages with your kubeconfig.</p>
  </section>`;
}
