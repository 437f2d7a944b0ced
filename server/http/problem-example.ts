import { type ErrorCode, errors } from '../../catalog/errors.ts'
import { reasons } from '../../catalog/reasons.ts'
import type { ProblemDocument, ProblemExtras } from '../kernel/problem.ts'

/**
 * Example members of each code's problem beyond the table, for the OpenAPI document and the error pages.
 */
const samples: Partial<Record<ErrorCode, { detail: string; extras?: ProblemExtras }>> = {
  invalid_input: {
    detail: '1 field is wrong.',
    extras: {
      errors: [
        {
          pointer: '#/limit',
          code: 'too_big',
          detail: 'limit must be at most 100.',
          fix: 'Use a number from 1 to 100.',
        },
      ],
    },
  },
  unauthenticated: { detail: 'The Authorization header is missing.' },
  entitlement_required: { detail: 'The plan of this workspace does not include API access.' },
  forbidden: {
    detail: 'Phone numbers are hidden from you, so they cannot be searched or sorted by.',
    extras: { reason: 'phone_hidden' },
  },
  insufficient_scope: { detail: 'This operation needs the scope crm:write.', extras: { scope: 'crm:write' } },
  not_found: { detail: 'No contact with the id 42.' },
  method_not_allowed: { detail: 'PUT is not a method of this path.' },
  conflict: {
    detail: reasons.still_running.when,
    extras: { reason: 'still_running' },
  },
  payload_too_large: { detail: 'The body is larger than 1048576 bytes.', extras: { limit_bytes: 1_048_576 } },
  unsupported_media_type: { detail: 'The body is declared as text/plain.' },
  confirm_required: { detail: 'Send Api-Confirm: delete.', extras: { confirm: 'delete' } },
  rate_limited: {
    detail: '60 changes a minute are allowed for this key.',
    extras: { violated_policies: ['write'] },
  },
  upstream_error: { detail: 'The messaging provider answered unexpectedly.' },
  timeout: { detail: 'The work did not finish in time.' },
}

/** Returns an example problem of this code. */
export const problemExample = (code: ErrorCode, publicUrl: string): ProblemDocument => {
  const { status, title, description } = errors[code]
  const { detail, extras } = samples[code] ?? { detail: description }
  return {
    type: `${publicUrl}/errors/${code}`,
    title,
    status,
    detail,
    code,
    request_id: 'req_01K6F4T8ZC5X9V2M7QNRWB3D1E',
    ...extras,
  }
}
