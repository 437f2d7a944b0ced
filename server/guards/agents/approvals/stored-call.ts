import { findMarked } from '../../../../catalog/marked.ts'
import type { Call, WriteCall } from '../../../kernel/call.ts'
import type { Operation } from '../../../../catalog/index.ts'
import type { SealedApproval } from '../../../../storage/agents/approval-secrets.ts'
import { type ApprovalRow, findApproval, hasLiveRecord } from '../../../../storage/agents/approvals.ts'
import type { App } from '../../../app.ts'
import type { Actor } from '../../../kernel/context.ts'
import { Problem } from '../../../kernel/problem.ts'

/** How long an approved call may begin to run: when every server is down for longer, it fails instead. */
export const RUN_SECONDS = 12 * 3600

/** Whether the values of a field are sealed wherever they are stored: all of them are secrets. */
const isSecret = (operation: string, field: string): boolean =>
  findMarked('private', 'input', operation)?.members.get(field)?.mark === 'secrets'

const toSealName = (workspaceId: string): string => `approval ${workspaceId}`

type Input = Record<string, unknown>

/** Splits an input into what may be read in the database, and its sealed rest; null when there is none. */
export const splitSecrets = (
  { webhookSealer }: Pick<App, 'webhookSealer'>,
  { actor, op }: Pick<Call, 'actor' | 'op'>,
  input: Input,
): { input: Input; secrets: string | null } => {
  const workspaceId = actor.workspace.id
  const isSealed = ([name, value]: [string, unknown]): boolean =>
    isSecret(op.name, name) && Object.keys(value as object).length > 0
  const entries = Object.entries(input)
  const secret = entries.filter(isSealed)
  return {
    input: Object.fromEntries(entries.filter((entry) => !isSealed(entry))),
    secrets:
      secret.length === 0
        ? null
        : webhookSealer.seal(JSON.stringify(Object.fromEntries(secret)), toSealName(workspaceId)),
  }
}

/** Returns the idempotency key of the call that a request holds; null: it had none; undefined: no such request. */
export const findIdempotencyKey = async (
  { db }: Pick<App, 'db'>,
  workspaceId: string,
  approvalId: string,
): Promise<string | null | undefined> => (await findApproval(db, workspaceId, approvalId))?.idempotency_key

/** Returns what a request holds, sealed again by the current secret; undefined when none of ours opens it. */
export const resealApproval = (
  { webhookSealer }: Pick<App, 'webhookSealer'>,
  { workspace_id: workspaceId, secrets }: SealedApproval,
): string | undefined => {
  const opened = webhookSealer.open(secrets, toSealName(workspaceId))
  return opened === undefined ? undefined : webhookSealer.seal(opened, toSealName(workspaceId))
}

export const keyEndedProblem = (): Problem =>
  new Problem('forbidden', 'The key that asks is revoked, expired or disabled, so the call does not run.', {
    reason: 'key_ended',
  })

/** Returns the input that runs: as it was asked for, with what the approver edited. */
export const toRunInput = (
  { webhookSealer }: Pick<App, 'webhookSealer'>,
  { workspace_id: workspaceId, input, secrets, edited }: ApprovalRow,
): Input => {
  const opened = secrets === null ? '{}' : webhookSealer.open(secrets, toSealName(workspaceId))
  if (opened === undefined)
    throw new Problem(
      'upstream_unavailable',
      'The call was sealed with a secret that this server was not given.',
      { reason: 'secret_outdated' },
    )
  return { ...input, ...(JSON.parse(opened) as Input), ...edited }
}

/** Returns the input that ran, for a repeat of the call: what was sealed is erased when a request ends. */
export const toReplayInput = ({ operation, input, edited }: ApprovalRow, given: Input): Input => {
  const secrets = Object.entries(given).filter(([name]) => isSecret(operation, name))
  return { ...input, ...Object.fromEntries(secrets), ...edited }
}

/** The idempotency key under which an approved call runs, once. */
const toRunKey = (approvalId: string): string => `approval-${approvalId}`

/** Returns an approved call as it runs: as the agent, whose approver is named. */
export const toApprovedCall = (row: ApprovalRow, asker: Actor, op: Operation, input: Input): WriteCall => ({
  actor: {
    ...asker,
    ...(row.decided_by === null
      ? {}
      : {
          approvedBy: {
            staffId: row.decided_by,
            name: row.decided_by_name ?? '',
            keyId: row.decided_key_id!,
          },
        }),
  },
  op,
  input,
  consent: { by: 'approval', approvalId: row.id, askedFor: row.asked_for },
  // An edited call is no longer the one that was planned: the person has seen what it sends.
  plan: row.edited === null ? (row.plan ?? undefined) : undefined,
  key: toRunKey(row.id),
  trace: { door: row.door, client: row.client, requestId: row.request_id, confirmed: true },
})

/** Records that end sooner than this may be gone before they are read. */
const REPLAY_MARGIN_MS = 60_000

/** The time until which the record of a call must be kept for its answer to be given again. */
export const toReplayLimit = (app: App): string =>
  new Date(Date.parse(app.now()) + REPLAY_MARGIN_MS).toISOString()

/** Whether the record of a run is there, so that executing the call again answers what it answered. */
export const mayReplay = (app: App, { actor, key }: Pick<WriteCall, 'actor' | 'key'>): Promise<boolean> =>
  hasLiveRecord(app.db, {
    workspaceId: actor.workspace.id,
    staffId: actor.staff.id,
    key,
    now: toReplayLimit(app),
  })
