import { mayPass } from '../catalog/passing-reasons.ts'
import { errors } from '../catalog/errors.ts'
import type { Operation } from '../catalog/operation.ts'
import type { ProblemDocument } from '../server/kernel/problem.ts'
import type { CallResponse } from '../server/kernel/respond.ts'
import { fitToBudget } from './budget.ts'
import { nameUntrusted, removeHidden } from './untrusted.ts'
import { getUntrusted, type View } from './view.ts'

type ToolResult = {
  content: { type: 'text'; text: string }[]
  isError?: boolean
  _meta: Record<string, unknown>
}

/** Converts the response of a call into a tool result with its structured content. */
export const toToolResult = (
  op: Operation,
  response: CallResponse,
  view: View | undefined,
): ToolResult & { structuredContent?: Record<string, unknown> } => {
  const result = toTextResult(op, response, view)
  return response.problem
    ? result
    : { ...result, structuredContent: JSON.parse(result.content[0]!.text) as Record<string, unknown> }
}

/**
 * Converts the response of a call into a tool result: the body as text, with the names of the fields that
 * outsiders wrote; a problem as an error with its fix. `view`: how a read was shown.
 */
export const toTextResult = (op: Operation, response: CallResponse, view: View | undefined): ToolResult => {
  const _meta = toMeta(response)
  if (!response.problem) {
    const body = removeHidden(view ? response.body : fitToBudget(response.body))
    const marked = isAsked(response) ? ASKED_UNTRUSTED : (view?.untrusted ?? getUntrusted(op))
    const pointers = response.isPlanned ? [...marked, '/plan/records'] : marked
    return { content: [{ type: 'text', text: nameUntrusted(body, pointers) }], _meta }
  }
  // An error has no structured content.
  const retryAfter = response.headers['Retry-After']
  const text = {
    ...response.problem,
    ...(response.problem.code === 'confirm_required'
      ? { detail: toConsentDetail(op, response.problem) }
      : {}),
    ...(retryAfter ? { retry_after_seconds: Number(retryAfter) } : {}),
    fix: toFix(op, response.problem),
  }
  // What the provider said is quoted in the detail.
  const quoted = response.problem.code === 'upstream_error' ? ['/detail'] : []
  const json = nameUntrusted(removeHidden(JSON.stringify(text)), quoted)
  return { content: [{ type: 'text', text: json }], isError: true, _meta }
}

/** Whether a person decides on the call: its answer is the request for that, and no answer of the operation. */
export const isAsked = ({ status, headers }: CallResponse): boolean =>
  status === 202 && 'Approval-Id' in headers

const ASKED_UNTRUSTED = ['/approval/contact/name']

/** Other doors take the verb as a header, which a tool call has none of. What else is said of a question stays. */
const toConsentDetail = (op: Operation, { detail }: ProblemDocument): string =>
  detail.includes('Api-Confirm') ? `${op.name} needs the consent of a person (${op.confirm}).` : detail

/** Returns the fix in terms of tools, which have arguments and no headers. A no of a person has none. */
const toFix = (op: Operation, { code, reason, idempotency_key: key }: ProblemDocument): string => {
  if (code === 'confirm_required')
    return (
      'Call again with `dry_run: true` to see what would happen. To run it, ask a person to run ' +
      `\`wcrm ${op.cli}\` on the command line.`
    )
  // Neither a template nor the customer's next message opens a channel that takes no replies.
  if (op.name === 'messaging_send_reply' && isOfChannel(reason))
    return 'No reply can be sent on this channel until an administrator has done what `detail` says: tell a person.'
  if (code === 'upstream_error' || code === 'conflict')
    return reason === 'outcome_unknown' || mayPass(reason)
      ? `Wait, then make the same call again${typeof key === 'string' ? ` with idempotency_key "${key}"` : ''}.`
      : 'The same call is refused again as long as this is so: change what `detail` names, or leave it.'
  // Whoever calls tools has one key, and what it may not do is no reason to look for another.
  if (code === 'forbidden' || code === 'insufficient_scope')
    return (
      'The same call is refused again. Do what `detail` says; where it names no way, ask a person to do it, or an ' +
      'administrator to allow it.'
    )
  return errors[code].fix
    .replaceAll('Idempotency-Key', 'idempotency_key')
    .replaceAll('`Retry-After`', '`retry_after_seconds`')
}

const isOfChannel = (reason: unknown): boolean =>
  reason === 'channel_not_supported' || reason === 'channel_not_connected'

/** Returns the request id for the logs and the key for a retry. */
const toMeta = ({ headers }: CallResponse): Record<string, unknown> => ({
  ...(headers['Request-Id'] ? { 'wcrm/request_id': headers['Request-Id'] } : {}),
  ...(headers['Idempotency-Key'] ? { 'wcrm/idempotency_key': headers['Idempotency-Key'] } : {}),
  ...(headers['Approval-Id'] ? { 'wcrm/approval_id': headers['Approval-Id'] } : {}),
  ...(headers['Approval'] ? { 'wcrm/approval': headers['Approval'] } : {}),
  ...(headers['Idempotent-Replayed'] ? { 'wcrm/idempotent_replayed': true } : {}),
})
