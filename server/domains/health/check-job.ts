import {
  addMissingChecks,
  type ChannelHealth,
  claimDueChecks,
  deleteCheck,
  findSecondsUntilNextCheck,
  type DueCheck,
  listNumbersOfAccount,
  listPassedProblems,
  scheduleCheck,
} from '../../../storage/channels/health.ts'
import type { App } from '../../app.ts'
import { Problem } from '../../kernel/problem.ts'
import { errorLogDetails } from '../../kernel/log-details.ts'
import { computeNextRunMs, type JobDefinition } from '../../work/runner.ts'
import { isProviderConfigured, type ProviderNumber } from '../../provider/port.ts'
import type { HealthFact } from './change.ts'
import { computeCheckSeconds } from './observe.ts'
import { recordHealth } from './record.ts'
import { numberStates } from './rules.ts'

/** How late a check may be that another server made due. */
const POLL_MS = 10_000
const MIN_DELAY_MS = 50
/** How often accounts that were added are looked for. */
const ADD_INTERVAL_MS = 15_000
const CHECK_TIMEOUT_MS = 20_000
/** Longer than a check may last: an expired lease means that its process died. */
const LEASE_SECONDS = 60
const MAX_CHECKS = 8

/**
 * Asks the provider about each account every quarter of an hour, and more often while something is wrong, so
 * that what nobody reported is noticed, and what is over is too. Also ends problems that pass by themselves.
 */
export const providerHealthJob = (app: App): JobDefinition => {
  let addedAt = -Infinity
  return {
    name: 'provider-health',
    intervalMs: POLL_MS,
    run: async (signal) => {
      if (!isProviderConfigured(app.provider)) return {}
      if (performance.now() - addedAt > ADD_INTERVAL_MS) {
        // A new channel is left alone for a moment: a sandbox must hear of its number first.
        await addMissingChecks(app.db, ADD_INTERVAL_MS / 1000)
        addedAt = performance.now()
      }
      let seconds = await findSecondsUntilNextCheck(app.db, app.now())
      let processed = 0
      if (seconds !== undefined && seconds <= 0) {
        processed = await doDueChecks(app, signal)
        if (processed === MAX_CHECKS) return { processed, nextInMs: 0 }
        seconds = await findSecondsUntilNextCheck(app.db, app.now())
      }
      return { processed, nextInMs: computeNextRunMs(seconds, { min: MIN_DELAY_MS, max: POLL_MS }) }
    },
  }
}

/** Ends problems that have passed, and checks accounts that are due. Returns how many were checked. */
const doDueChecks = async (app: App, signal: AbortSignal): Promise<number> => {
  const passed = await listPassedProblems(app.db, app.now(), 100)
  for (const { workspace_id: workspaceId, channel_id: channelId } of passed)
    await recordHealth(app, { workspaceId, channelId }, () => [])
  const due = await claimDueChecks(app.db, LEASE_SECONDS, MAX_CHECKS)
  await Promise.all(due.map((check) => checkAccount(app, check, signal)))
  return due.length
}

/** What the provider's answer says of a number. */
const readNumber = ({ status, qualityRating, messagingLimit }: ProviderNumber): HealthFact[] => {
  const state = Object.hasOwn(numberStates, status) ? numberStates[status] : undefined
  const quality =
    qualityRating !== null && /^(?:GREEN|YELLOW|RED)$/.test(qualityRating) ? qualityRating : null
  const limit = messagingLimit !== null && messagingLimit !== 'TIER_NOT_SET' ? messagingLimit : null
  return [
    { kind: 'ended', reasons: ['token_revoked', 'permission_missing'] },
    ...(state === 'connected' ? [{ kind: 'connected' as const, told: false }] : []),
    ...(state && state !== 'connected' ? [{ kind: 'stopped' as const, ...state }] : []),
    {
      kind: 'figures',
      quality: quality?.slice(0, 50) ?? null,
      limit: limit?.slice(0, 50) ?? null,
      told: false,
    },
  ]
}

const checkAccount = async (
  app: App,
  { workspace_id: workspaceId, account_id: accountId, failures }: DueCheck,
  jobSignal: AbortSignal,
): Promise<void> => {
  const signal = AbortSignal.any([jobSignal, AbortSignal.timeout(CHECK_TIMEOUT_MS)])
  try {
    const ours = await listNumbersOfAccount(app.db, workspaceId, accountId === '' ? null : accountId)
    if (ours.length === 0) return await deleteCheck(app.db, workspaceId, accountId)
    const numbers =
      accountId === ''
        ? await Promise.all(ours.map((phoneNumberId) => app.provider.phoneNumber({ phoneNumberId }, signal)))
        : await app.provider.phoneNumbers(accountId, signal)
    for (const number of numbers)
      if (ours.includes(number.id))
        await recordHealth(app, { phoneNumberId: number.id }, (channel: ChannelHealth) =>
          channel.workspace_id === workspaceId ? readNumber(number) : [],
        )
    await scheduleCheck(app.db, workspaceId, accountId, computeCheckSeconds(0), 0)
  } catch (error) {
    if (jobSignal.aborted) return
    // What a refusal says of the channels was recorded with the call.
    if (!(error instanceof Problem)) app.log.warn(errorLogDetails(error), 'Cannot check an account')
    await scheduleCheck(
      app.db,
      workspaceId,
      accountId,
      computeCheckSeconds(failures + 1),
      Math.min(failures + 1, 100),
    ).catch((scheduling: unknown) =>
      app.log.warn(errorLogDetails(scheduling), 'Cannot schedule the check of an account'),
    )
  }
}
