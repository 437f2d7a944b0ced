import { passingReasons } from './passing-reasons.ts'

/**
 * The table of error codes: HTTP status, title, description and how to fix it. `code` is stable, so that
 * clients can branch on it (docs/errors.md).
 */
export const errors = {
  invalid_input: {
    status: 400,
    title: 'Invalid input',
    description:
      'A field, header or parameter is missing or malformed. `errors` lists each one with its fix; ' +
      '`reason` names the rule, if any.',
    fix: 'Correct the fields that `errors` names and send the request again.',
  },
  unauthenticated: {
    status: 401,
    title: 'Not authenticated',
    description: 'The Authorization header is missing, or the key is unknown, expired or revoked.',
    fix: 'Send `Authorization: Bearer <API key>`. Create keys with `wcrm admin keys create`.',
  },
  entitlement_required: {
    status: 403,
    title: 'Plan does not include this',
    description: 'The plan of the workspace lacks the feature `api_access`.',
    fix: 'Add the feature with `wcrm admin workspaces update --features api_access`.',
  },
  forbidden: {
    status: 403,
    title: 'Forbidden',
    description:
      'The staff member who owns the key lacks the permission, a limit of the plan is reached, or the ' +
      'key may not be used from this address, is paused, or its policy denies the call. `reason` states ' +
      'which.',
    fix:
      'Use a key of a staff member who has the permission, or ask an administrator to change the ' +
      'role, the permission, the limit or the addresses of the key.',
  },
  insufficient_scope: {
    status: 403,
    title: 'Key lacks the scope',
    description: 'The key does not hold the scope that the operation needs; `scope` names it.',
    fix: 'Use a key that holds the scope; `wcrm admin keys create --scopes` creates one.',
  },
  declined: {
    status: 403,
    title: 'Declined',
    description:
      'A person declined this call, or nobody approved it in time (`reason` is `expired`), or it was ' +
      "withdrawn (`cancelled`). `approval_id` names the request, `note` is the person's comment.",
    fix: 'Do not try the same in another way; ask the person if it matters.',
  },
  not_found: {
    status: 404,
    title: 'Not found',
    description: 'No such record in this workspace, or no such route or operation.',
    fix: 'Check the id or the path; list the records to find the right one.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    description: 'The path exists, but not with this method. The `Allow` header lists the methods it has.',
    fix: 'Use one of the methods in the `Allow` header.',
  },
  conflict: {
    status: 409,
    title: 'Conflict',
    description:
      'The request conflicts with the current state: for example, a record with this name exists, or a ' +
      'request with the same Idempotency-Key is still running. `reason` states which.',
    fix:
      'Read the record again and change the request; the same request is refused again. Only with one of ' +
      'the reasons ' +
      `${Object.keys(passingReasons)
        .map((reason) => `\`${reason}\``)
        .join(', ')}, ` +
      'wait and retry with the same key.',
  },
  window_closed: {
    status: 409,
    title: 'Reply window closed',
    description:
      'A free-form reply was requested outside the reply window of the channel; `window` shows it.',
    fix:
      'Send an approved template instead (`messaging_send_template`), or wait until the customer ' +
      'writes.',
  },
  precondition_failed: {
    status: 412,
    title: 'Changed since it was read',
    description:
      'The record does not have the version in `If-Match` or `if_version`. `current_version` is its ' +
      'version. Nothing was changed.',
    fix: 'Read the record again, apply the change to it, and send it with its new version.',
  },
  payload_too_large: {
    status: 413,
    title: 'Body too large',
    description: 'The body is larger than the operation accepts (1 MiB, or `limit_bytes`).',
    fix: 'Send less in one request: split it into several.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    description: 'The body is not declared as JSON.',
    fix: 'Send `Content-Type: application/json`.',
  },
  confirm_required: {
    status: 428,
    title: 'Confirmation required',
    description:
      "The change cannot be undone, or reaches customers, so it needs the operation's verb as " +
      'confirmation; `confirm` names it.',
    fix: 'Send the header `Api-Confirm: <verb>`, or try the change with `dry_run`.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    description:
      'The key or the workspace is over its limit, or an address failed to authenticate too often; ' +
      '`violated_policies` states which.',
    fix: 'Wait the number of seconds in `Retry-After`, then send the request again.',
  },
  internal_error: {
    status: 500,
    title: 'Internal error',
    description: 'The server failed unexpectedly. The detail states whether a change may have been made.',
    fix: 'Retry with the same Idempotency-Key; if it happens again, report the `request_id`.',
  },
  upstream_error: {
    status: 502,
    title: 'Upstream error',
    description:
      'The messaging provider or a backing service refused the request, or its response was unexpected.',
    fix:
      'Correct what `detail` names; the same request is refused again. Only with the reason ' +
      '`outcome_unknown`, repeat it with the same Idempotency-Key to learn the outcome.',
  },
  service_unconfigured: {
    status: 503,
    title: 'Not configured',
    description: 'This capability is turned off on this server.',
    fix: 'Ask the administrator of the server to turn it on.',
  },
  upstream_unavailable: {
    status: 503,
    title: 'Temporarily unavailable',
    description: 'A backing service, such as the database, cannot be reached at the moment.',
    fix: 'Retry with backoff and the same Idempotency-Key.',
  },
  timeout: {
    status: 504,
    title: 'Timed out',
    description:
      'The operation did not finish in time. With the reason `outcome_unknown`, the messaging provider ' +
      'has not confirmed the call, which may have been made.',
    fix:
      'Retry with the same Idempotency-Key (`idempotency_key`): it never runs twice. A search may need to be ' +
      'narrowed.',
  },
} as const

export type ErrorCode = keyof typeof errors

/**
 * Codes that every operation can return. Any call is `forbidden` from an address that its key does
 * not allow; an operation lists the code too when its caller may lack a permission.
 */
export const commonErrors: readonly ErrorCode[] = [
  'declined',
  'invalid_input',
  'unauthenticated',
  'entitlement_required',
  'forbidden',
  'insufficient_scope',
  'rate_limited',
  'method_not_allowed',
  'payload_too_large',
  'unsupported_media_type',
  'internal_error',
  'upstream_unavailable',
  'timeout',
]
