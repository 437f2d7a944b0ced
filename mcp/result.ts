import { errors } from '../catalog/errors.ts'
import type { Operation } from '../catalog/operation.ts'
import type { CallResponse } from '../server/core/respond.ts'

type ToolResult = {
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: boolean
  _meta: Record<string, unknown>
}

/**
 * A call's answer as a tool result: the body as structured content and as text; a problem as an error that
 * says how to fix it.
 */
export const toToolResult = (op: Operation, answer: CallResponse): ToolResult => {
  const _meta = toMeta(answer)
  if (!answer.problem) {
    return {
      content: [{ type: 'text', text: answer.body }],
      structuredContent: JSON.parse(answer.body) as Record<string, unknown>,
      _meta,
    }
  }
  // The problem has not the shape of the tool's outputSchema, so it travels as text alone.
  const retryAfter = answer.headers['Retry-After']
  const text = {
    ...answer.problem,
    ...(retryAfter ? { retry_after_seconds: Number(retryAfter) } : {}),
    mend: toFix(op, answer.problem.code),
  }
  return { content: [{ type: 'text', text: JSON.stringify(text) }], isError: true, _meta }
}

/** The fix as a caller of tools can do it: there is no header to send here. */
const toFix = (op: Operation, code: keyof typeof errors): string =>
  code === 'confirm_required'
    ? `Call again with \`dry_run: true\` to see what would happen. To do it, ask a person to run \`wcrm ${op.cli}\` on the command line, or to call it over REST with \`Api-Confirm: ${op.confirm}\`.`
    : errors[code].fix

/** Names the request for the logs and the key for a retry. */
const toMeta = ({ headers }: CallResponse): Record<string, unknown> => ({
  ...(headers['Request-Id'] ? { 'wcrm/request_id': headers['Request-Id'] } : {}),
  ...(headers['Idempotency-Key'] ? { 'wcrm/idempotency_key': headers['Idempotency-Key'] } : {}),
  ...(headers['Idempotent-Replayed'] ? { 'wcrm/idempotent_replayed': true } : {}),
})
