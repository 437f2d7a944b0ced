import { hastenSharedChecks, scheduleCheck } from '../../../storage/channels/health.ts'
import type { CallOwner, CallOwnerRow } from '../../../storage/channels/provider-accounts.ts'
import type { App } from '../../app.ts'
import type { Problem } from '../../kernel/problem.ts'
import { errorLogDetails } from '../../kernel/log-details.ts'
import { computeBackoff } from '../../work/backoff.ts'
import type { Provider } from '../../provider/port.ts'
import { type HealthTarget, recordHealth } from './record.ts'
import {
  accountReasonsEndedBySend,
  readCallProblem,
  reasonsEndedByCall,
  reasonsEndedBySend,
} from './rules.ts'

/** A channel that was disconnected is checked first after this time. */
const FIRST_CHECK_SECONDS = 30

const isSend = (name: keyof Provider): boolean => name === 'send'
/** The checks themselves: they have a schedule of their own. */
const isCheck = (name: keyof Provider): boolean => name === 'phoneNumbers' || name === 'phoneNumber'

/** What a refusal says about channels, to recognize one that was recorded a moment ago. */
export const toProblemKey = (name: keyof Provider, problem: Problem): string | undefined => {
  const learnt = readCallProblem(problem, isSend(name))
  return learnt && `${learnt.problem.status} ${learnt.problem.reason}`
}

/**
 * Records what the outcome of a call says about the channels that it concerns. `problem`: absent when it
 * succeeded. Never rejects: the call has its outcome, whatever becomes of this.
 */
export const recordCall = async (
  app: App,
  name: keyof Provider,
  { phoneNumberId = null }: CallOwner,
  row: CallOwnerRow,
  problem: Problem | undefined,
): Promise<void> => {
  const ofNumber: HealthTarget | undefined = phoneNumberId === null ? undefined : { phoneNumberId }
  const ofAccount: HealthTarget | undefined =
    row.account_id === null ? undefined : { accountId: row.account_id }
  const widest = ofAccount ?? ofNumber
  try {
    if (!problem) {
      if (widest)
        await recordHealth(app, widest, ({ phone_number_id: number }) => [
          { kind: 'ended', reasons: reasonsEndedByCall },
          ...(isSend(name)
            ? [
                {
                  kind: 'ended' as const,
                  reasons: number === phoneNumberId ? reasonsEndedBySend : accountReasonsEndedBySend,
                },
              ]
            : []),
        ])
      return
    }
    const learnt = readCallProblem(problem, isSend(name))
    const of = learnt?.of === 'number' ? (ofNumber ?? ofAccount) : widest
    if (!learnt || !of) return
    const strikes = await recordHealth(app, of, () => [{ kind: 'problem', problem: learnt.problem }])
    if (learnt.problem.status === 'disconnected' && !isCheck(name))
      await scheduleRecovery(app, row, strikes, learnt.problem.reason === 'token_revoked')
  } catch (error) {
    app.log.warn(errorLogDetails(error), 'Cannot record the health of a channel')
  }
}

/** Plans when the provider is asked whether it is over: later, the more often it came back. */
const scheduleRecovery = async (
  app: App,
  { workspace_id: workspaceId, account_id: accountId, account }: CallOwnerRow,
  strikes: number,
  isTokenRefused: boolean,
): Promise<void> => {
  await scheduleCheck(app.db, workspaceId, accountId ?? '', computeCheckSeconds(Math.max(strikes, 1)), 1)
  if (isTokenRefused && account === null) await hastenSharedChecks(app.db)
}

const MAX_CHECK_SECONDS = 15 * 60

/** Seconds until the next check of what failed so many times in a row. */
export const computeCheckSeconds = (failures: number): number =>
  failures === 0
    ? MAX_CHECK_SECONDS
    : computeBackoff(failures, { first: FIRST_CHECK_SECONDS, longest: MAX_CHECK_SECONDS })
