import {
  addMissingChecks,
  type ChannelHealth,
  findSecondsUntilPassed,
  listNumbersOfAccount,
  listPassedProblems,
} from '../../../storage/channels/health.ts'
import { advanceRun, finishRun, type Run } from '../../../storage/work/runs.ts'
import type { App } from '../../app.ts'
import { Problem } from '../../kernel/problem.ts'
import { errorLogDetails } from '../../kernel/log-details.ts'
import { createRunJob, type Progress } from '../../work/engine.ts'
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
const MAX_CHECKS = 8

/**
 * Asks the provider about each account every quarter of an hour, and more often while something is wrong, so
 * that what nobody reported is noticed, and what is over is too. Also ends problems that pass by themselves.
 */
export const providerHealthJob = (app: App): JobDefinition => {
  const checks = createRunJob(app, {
    kind: 'account_checks',
    job: 'provider-health',
    turns: MAX_CHECKS,
    step: (run, { signal }) => checkAccount(app, run, signal),
  })
  let addedAt = -Infinity
  return {
    ...checks,
    intervalMs: POLL_MS,
    run: async (signal, nextWake) => {
      if (!isProviderConfigured(app.provider)) return {}
      if (performance.now() - addedAt > ADD_INTERVAL_MS) {
        // A new channel is left alone for a moment: a sandbox must hear of its number first.
        await addMissingChecks(app.db, ADD_INTERVAL_MS / 1000)
        addedAt = performance.now()
      }
      await endPassedProblems(app)
      const { processed = 0, nextInMs = POLL_MS } = await checks.run(signal, nextWake)
      const seconds = await findSecondsUntilPassed(app.db, app.now())
      const passedInMs = computeNextRunMs(seconds, { min: MIN_DELAY_MS, max: POLL_MS })
      return { processed, nextInMs: Math.min(nextInMs, passedInMs) }
    },
  }
}

const endPassedProblems = async (app: App): Promise<void> => {
  const passed = await listPassedProblems(app.db, app.now(), 100)
  for (const { workspace_id: workspaceId, channel_id: channelId } of passed)
    await recordHealth(app, { workspaceId, channelId }, () => [])
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

const checkAccount = async (app: App, run: Run, jobSignal: AbortSignal): Promise<Progress> => {
  const { workspace_id: workspaceId, subject: accountId, attempts } = run
  const signal = AbortSignal.any([jobSignal, AbortSignal.timeout(CHECK_TIMEOUT_MS)])
  const ours = await listNumbersOfAccount(app.db, workspaceId, accountId === '' ? null : accountId)
  if (ours.length === 0) {
    await finishRun(app.db, run)
    return 'over'
  }
  try {
    const numbers =
      accountId === ''
        ? await Promise.all(ours.map((phoneNumberId) => app.provider.phoneNumber({ phoneNumberId }, signal)))
        : await app.provider.phoneNumbers(accountId, signal)
    for (const number of numbers)
      if (ours.includes(number.id))
        await recordHealth(app, { phoneNumberId: number.id }, (channel: ChannelHealth) =>
          channel.workspace_id === workspaceId ? readNumber(number) : [],
        )
  } catch (error) {
    if (jobSignal.aborted) throw error
    // What a refusal says of the channels was recorded with the call.
    if (!(error instanceof Problem)) app.log.warn(errorLogDetails(error), 'Cannot check an account')
    return { seconds: computeCheckSeconds(attempts + 1), tries: 1 }
  }
  await advanceRun(app.db, run)
  return { seconds: computeCheckSeconds(0), tries: 0 }
}
