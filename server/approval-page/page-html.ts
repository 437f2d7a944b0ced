import type { z } from 'zod'
import type { findOperation } from '../../catalog/index.ts'
import type { getApproval } from '../../catalog/approvals.ts'
import { listHidden, showHidden } from '../../catalog/text.ts'
import { escapeHtml } from '../http/html.ts'
import { isolate, renderErrorBox, renderPage } from '../oauth/pages.ts'

/** The page on which a person decides on a call of an AI agent. It needs no script. */

type Detail = z.infer<(typeof getApproval)['output']>
/** `text`, `note`: what the person wrote already. */
type Form = {
  action: string
  token: string
  error?: string | undefined
  text?: string | undefined
  note?: string | undefined
  /** What the call acts on, as the page shows it. */
  version?: string | null
}

/** Asks for a login code; tells nothing of the call. */
export const renderSignIn = ({ action, token, error }: Form): string =>
  renderPage(
    'An AI agent asks for your approval',
    `${renderErrorBox(error)}
<form method="post" action="${escapeHtml(action)}">
<input type="hidden" name="token" value="${escapeHtml(token)}">
<label for="code">Your login code</label>
<input type="text" id="code" name="code" autocomplete="one-time-code" autocapitalize="characters"
 spellcheck="false" maxlength="40" required autofocus>
<button class="main" name="step" value="login">Show what it asks</button>
</form>
<p>Get a code with <code>wcrm login-code</code>, or from your administrator
(<code>wcrm admin login-code --staff ID</code>). It works once, for 10 minutes.</p>`,
  )

/** The text of a call that a person may change; undefined when it has none. */
export const getEditableText = ({ input }: Detail): string | undefined =>
  [input?.['text'], input?.['caption']].find((value) => typeof value === 'string')

const statusTexts: Record<Detail['status'], string> = {
  pending: 'Nobody has decided yet.',
  approved: 'It was approved, and runs now.',
  done: 'It was approved, and ran.',
  failed: 'It was approved, but could not run.',
  declined: 'It was declined. It never runs.',
  expired: 'Nobody decided in time. It never runs.',
  cancelled: 'It was withdrawn. It never runs.',
}

const renderLines = (lines: readonly string[]): string =>
  `<div class="box lines">${lines.map((line) => `<p><bdi>${escapeHtml(showHidden(line))}</bdi></p>`).join('\n')}</div>`

/** A field shows a text as it is, so that what nobody sees in it is told below; nothing where there is none. */
const renderHidden = (text: string): string => {
  const found = listHidden(text).map(({ shown, count }) =>
    count === 1 ? shown : `${shown} (${count} times)`,
  )
  return found.length === 0
    ? ''
    : `<div class="box warn"><p>The text has characters that nobody sees, or that turn its direction:
<code>${escapeHtml(found.join(', '))}</code></p></div>`
}

const renderForm = (detail: Detail, { action, token, text: written, note = '', version }: Form): string => {
  const asked = getEditableText(detail)
  const text = asked === undefined ? undefined : (written ?? asked)
  // A browser drops the first line break of a text field.
  const field =
    text === undefined
      ? ''
      : `<label for="text">Text, which you may change</label>
<textarea id="text" name="text" rows="6" maxlength="4096">\n${escapeHtml(text)}</textarea>
${renderHidden(text)}`
  return `<form method="post" action="${escapeHtml(action)}" autocomplete="off">
<input type="hidden" name="token" value="${escapeHtml(token)}">
<input type="hidden" name="version" value="${escapeHtml(version ?? '')}">
${field}
<label for="note">Note to the agent</label>
<textarea id="note" name="note" rows="2" maxlength="1000">\n${escapeHtml(note)}</textarea>
<button class="main" name="step" value="approve">Approve</button>
<button name="step" value="decline">Decline</button>
</form>`
}

/** Shows a call whole, and asks for the decision while it is open. */
export const renderApproval = (
  detail: Detail,
  operation: ReturnType<typeof findOperation>,
  form: Form,
): string => {
  const { asked_by: by, decided_by: decider, outcome } = detail
  const facts = [
    statusTexts[detail.status],
    ...(decider === null ? [] : [`Decided by ${decider.name ?? `staff ${decider.id}`}`]),
    ...(outcome?.detail ? [outcome.detail] : []),
  ]
  return renderPage(
    detail.status === 'pending' ? 'May the AI agent do this?' : 'A call of an AI agent',
    `${renderErrorBox(form.error)}
<div class="box"><p>The key <strong>${isolate(by.key.name ?? `key ${by.key.id}`)}</strong> of
<strong>${isolate(by.staff.name ?? `staff ${by.staff.id}`)}</strong> asks:
${escapeHtml(operation?.summary ?? detail.operation)} (<code>${escapeHtml(detail.operation)}</code>)</p></div>
${renderLines(detail.summary)}
${
  detail.status === 'pending'
    ? `${renderForm(detail, form)}<p><small>Open until ${escapeHtml(detail.expires_at)}.</small></p>`
    : renderLines(facts)
}`,
  )
}

/** Says what happened, without a form. */
export const renderMessage = (title: string, text: string): string =>
  renderPage(title, `<p>${escapeHtml(showHidden(text))}</p>`)
