import type { Scope } from '../../catalog/operation.ts'
import { showHidden } from '../../catalog/text.ts'
import { escapeHtml } from '../http/html.ts'

const MAX_NAME_CHARACTERS = 255

/** The pages that a person sees. They need no script, and fit a phone. */

const style = `
:root { color-scheme: light dark }
body { font: 17px/1.5 system-ui, sans-serif; max-width: 30rem; margin: 0 auto; padding: 1.5rem 1rem 4rem }
h1 { font-size: 1.35rem; line-height: 1.3; overflow-wrap: anywhere }
.box { border: 1px solid #8886; border-radius: 8px; padding: .8rem 1rem; margin: 1rem 0; overflow-wrap: anywhere }
.box p { margin: .3rem 0 }
.warn { border-left: 4px solid #d97706 }
.error { border-left: 4px solid #dc2626 }
label { display: block; margin: .5rem 0 }
label small { display: block; margin-left: 1.9rem; opacity: .8 }
input[type=text] { font: 1.3rem ui-monospace, monospace; width: 100%; box-sizing: border-box; padding: .6rem;
  letter-spacing: .06em; border: 1px solid #8889; border-radius: 6px; text-transform: uppercase }
input[type=checkbox] { width: 1.2rem; height: 1.2rem; vertical-align: -.15rem; margin: 0 .5rem 0 0 }
textarea { font: inherit; width: 100%; box-sizing: border-box; padding: .6rem; border: 1px solid #8889;
  border-radius: 6px }
.lines p { white-space: pre-wrap }
button { font: inherit; width: 100%; padding: .75rem; margin: .4rem 0; border-radius: 6px; cursor: pointer;
  border: 1px solid #8889; background: Canvas; color: CanvasText }
button.main { background: #1d4ed8; border-color: #1d4ed8; color: #fff; font-weight: 600 }
code { font: .95em ui-monospace, monospace }`

/** A page without scripts; `body` is HTML. */
export const renderPage = (title: string, body: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)} · wcrm</title>
<style>${style}</style></head><body>
<h1>${escapeHtml(title)}</h1>
${body}
</body></html>
`

/** Headers of a page: no script runs, no other page shows it in a frame, nothing keeps it. */
export const pageHeaders = (formTargets: string): Record<string, string> => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    `default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action ${formTargets}; ` +
    "frame-ancestors 'none'",
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
})

/** `redirectUri`: where the form leads in the end; browsers apply `form-action` to redirects too. */
export const setPageHeaders = (
  ctx: { set: (name: string, value: string) => void },
  redirectUri?: string,
): void => {
  for (const [name, value] of Object.entries(pageHeaders(toFormTargets(redirectUri)))) ctx.set(name, value)
}

const toFormTargets = (redirectUri: string | undefined): string => {
  const url = redirectUri === undefined ? undefined : URL.parse(redirectUri)
  if (!url) return redirectUri === undefined ? "'none'" : "'self'"
  return url.protocol === 'https:' || url.protocol === 'http:'
    ? `'self' ${url.origin}`
    : `'self' ${url.protocol}`
}

/** Who asks. `domain`: of the document that describes the client; a registered client has none. */
export type ShownClient = {
  name: string | undefined
  domain: string | undefined
  /** The host that the answer goes to, or the scheme of an app. */
  target: string
  isLocal: boolean
  /** The address that an app opens. */
  opens: string | undefined
}

/**
 * Names are shown as text of one direction, with what nobody sees written out: a name must not rearrange the sentence
 * around it, nor look like another one.
 */
export const isolate = (text: string): string =>
  `<bdi>${escapeHtml(showHidden(Array.from(text).slice(0, MAX_NAME_CHARACTERS).join('')))}</bdi>`

const renderClient = ({ name, domain, target, isLocal, opens }: ShownClient): string => {
  const called =
    name === undefined ? '' : `<p>It calls itself “${isolate(name)}”. Anybody can choose a name.</p>`
  const goesTo = isLocal
    ? `<p>Access goes to ${opens === undefined ? 'a' : 'the'} program <strong>on the device you are using</strong>${
        opens === undefined ? '' : ` that opens <strong>${isolate(opens)}</strong>`
      }.</p>`
    : `<p>Access goes to <strong>${isolate(target)}</strong>.</p>`
  return domain === undefined
    ? `<div class="box"><p>The application has not proved who it is.</p>${called}${goesTo}</div>`
    : `<div class="box"><p>The application of <strong>${isolate(domain)}</strong></p>${called}${goesTo}</div>`
}

const toTitle = ({ domain, target, isLocal }: ShownClient, article: 'A' | 'a'): string =>
  domain ?? (isLocal ? `${article} program on this device` : target)

/** What went wrong with the form before; nothing without an error. */
export const renderErrorBox = (error: string | undefined): string =>
  error === undefined ? '' : `<div class="box error" role="alert">${escapeHtml(showHidden(error))}</div>`

type FormPage = { client: ShownClient; action: string; token: string; error?: string | undefined }

/** Asks for a login code. */
export const renderLoginPage = ({ client, action, token, error }: FormPage): string =>
  renderPage(
    `${toTitle(client, 'A')} wants to connect to wcrm`,
    `${renderClient(client)}
${renderErrorBox(error)}
<form method="post" action="${escapeHtml(action)}">
<input type="hidden" name="token" value="${escapeHtml(token)}">
<label for="code">Your login code</label>
<input type="text" id="code" name="code" autocomplete="one-time-code" autocapitalize="characters"
 spellcheck="false" maxlength="40" required autofocus>
<button class="main" name="step" value="login">Continue</button>
</form>
<p>Get a code with <code>wcrm login-code</code>, or from your administrator
(<code>wcrm admin login-code --staff ID</code>). It works once, for 10 minutes.</p>
<form method="post" action="${escapeHtml(action)}">
<input type="hidden" name="token" value="${escapeHtml(token)}">
<button name="step" value="decline">Cancel</button>
</form>`,
  )

/** What a scope allows, for somebody who has never seen one. */
const scopeTexts: Record<string, string> = {
  'mcp:read': 'Read contacts, conversations, templates and reports that you may see',
  'crm:write': 'Change contacts, tags, groups, custom fields and saved filters',
  'messaging:write': 'Send messages to customers; manage templates and quick messages',
  'inbox:write': 'Assign, close, tag and note conversations',
  'webhooks:write': 'Change where events are sent outside of wcrm',
}

type ConsentPage = FormPage & {
  workspace: string
  staff: string
  scopes: readonly Scope[]
  /** Asked for, but not to be had with this login code. */
  withheld: readonly Scope[]
}

/** Asks for consent. */
export const renderConsentPage = (page: ConsentPage): string => {
  const { client, action, token, error, workspace, staff, scopes, withheld } = page
  const boxes = scopes.map(
    (scope) => `<label><input type="checkbox" name="scope" value="${escapeHtml(scope)}" checked>
<code>${escapeHtml(scope)}</code><small>${escapeHtml(scopeTexts[scope] ?? 'Other operations')}</small></label>`,
  )
  return renderPage(
    `Let ${toTitle(client, 'a')} act for you?`,
    `${renderClient(client)}
${renderErrorBox(error)}
<div class="box"><p>You: <strong>${isolate(staff)}</strong></p>
<p>Workspace: <strong>${isolate(workspace)}</strong></p></div>
<form method="post" action="${escapeHtml(action)}">
<input type="hidden" name="token" value="${escapeHtml(token)}">
<p>It may:</p>
${boxes.join('\n')}
${withheld.length === 0 ? '' : `<p><small>Your key lacks ${escapeHtml(withheld.join(', '))}.</small></p>`}
<div class="box warn"><p>It becomes the key of an <strong>AI agent</strong> that acts in your name. It sees phone
numbers masked. What it sends, deletes or submits waits for a person’s approval, unless an administrator
allows more.</p>
<p>An administrator can pause or revoke it at any time.</p></div>
<button class="main" name="step" value="approve">Allow</button>
<button name="step" value="decline">Decline</button>
</form>`,
  )
}

/** What went wrong, in plain words. `code`: of the protocol. */
const errorTexts: Record<string, string> = {
  invalid_client:
    'wcrm does not know this application, or could not read the description that its address should give. ' +
    'Connect it again from its own settings.',
  invalid_redirect_uri:
    'The application asked for the answer to be sent to an address that it never registered.',
  invalid_request: 'The application sent a request that wcrm cannot read. Start again in the application.',
  invalid_target: 'The application asked for access to another server.',
  session_not_found:
    'This sign-in has expired, or it was started in another browser. Start again in the application.',
  too_many_requests: 'There were too many attempts from your network. Wait a minute, then start again.',
  not_found: 'There is no such page. Start again in the application.',
  server_error: 'wcrm could not finish this. Start again in a moment.',
}

/** The page of a request that cannot go back to the application, or goes back by `link`, which is HTML. */
export const renderErrorPage = (code: string, description?: string, link = ''): string => {
  const key =
    code === 'invalid_request' && /session|expired|interaction/.test(description ?? '')
      ? 'session_not_found'
      : code
  const text = errorTexts[key] ?? 'wcrm cannot answer this request. Start again in the application.'
  const technical = description === undefined ? code : `${code}: ${description}`
  return renderPage(
    'This did not work',
    `<p>${escapeHtml(text)}</p>${link}<p><small>For whoever runs the application: <code>${escapeHtml(
      technical.slice(0, 300),
    )}</code></small></p>`,
  )
}

/** The page of an error that the application is told of once the person follows its link. */
export const errorWithLinkResponse = (to: URL): Response => {
  // A response type that is not supported is answered in the fragment.
  const told = to.searchParams.has('error') ? to.searchParams : new URLSearchParams(to.hash.slice(1))
  const target = to.protocol === 'https:' || to.protocol === 'http:' ? to.host : to.protocol.slice(0, -1)
  const link = `<div class="box warn"><p>Anybody can write a link to this page, and choose where it leads. If you have
just come from the application: <a rel="noreferrer" href="${escapeHtml(to.href)}">back to
${isolate(target)}</a></p></div>`
  const page = renderErrorPage(
    told.get('error') ?? 'server_error',
    told.get('error_description') ?? undefined,
    link,
  )
  return new Response(page, { status: 400, headers: pageHeaders("'none'") })
}

/** A complete page of an error, outside of the library. */
export const errorPageResponse = (
  status: number,
  code: string,
  headers: Record<string, string> = {},
): Response =>
  new Response(renderErrorPage(code), { status, headers: { ...pageHeaders("'none'"), ...headers } })
