import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { deleteExpiredSandboxMedia } from '../storage/files.ts'
import { loadSettingsOfAccounts, type SandboxSettings } from '../storage/settings.ts'
import {
  hasSandboxUpdatesInFlight,
  deleteStaleSandboxUpdates,
  type DueSandboxUpdate,
  completeSandboxUpdates,
  postponeSandboxUpdates,
  claimSandboxUpdates,
  findSecondsUntilNextSandboxWork,
} from '../storage/updates.ts'
import { computeNextRunMs, createJob, type Job, type JobDefinition } from '../../../server/work/runner.ts'
import { type SandboxOptions, toUnixSeconds } from './call.ts'
import { reviewDueTemplates } from './reviewer.ts'

const BATCH_SIZE = 1000
/** The provider's webhooks have at most 3 MB. */
const MAX_WEBHOOK_BYTES = 2_900_000
const RESPONSE_TIMEOUT_MS = 10_000
/** Whoever stores an update wakes the delivery, which knows when the next one is due: this finds the rest. */
const IDLE_MS = 20_000
const MIN_PAUSE_MS = 20
/** An update without an ordered delay is due at the latest after this time. */
const MAX_REGULAR_DELAY_MS = 1_000
const CLEANUP_INTERVAL_MS = 600_000

export type UpdateDelivery = {
  /** Delivers the updates that are due; returns how many the app accepted. */
  pump: () => Promise<number>
  /** Delivers until no regular update is left. */
  drain: () => Promise<void>
  /** Starts to deliver in the background; returns a function that stops it. */
  start: () => () => Promise<void>
  /** Tells the process that delivers in the background that there may be updates. */
  wake: () => void
}

const JOB = 'sandbox-updates'

type DeliveryCounts = { attempted: number; accepted: number }

/** The provider escapes non-ASCII characters in the bytes that it signs. */
const toAsciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

const sign = (appSecret: string, body: string): string =>
  `sha256=${createHmac('sha256', appSecret).update(body).digest('hex')}`

/** Formats one webhook. Consecutive updates of one account share an entry, which keeps the order. */
const formatWebhook = (updates: readonly DueSandboxUpdate[], now: string): string => {
  const entry: { id: string; time: number; changes: { value: unknown; field: string }[] }[] = []
  for (const { account_id: id, value, field } of updates) {
    if (entry.at(-1)?.id !== id) entry.push({ id, time: Number(toUnixSeconds(now)), changes: [] })
    entry.at(-1)!.changes.push({ value, field })
  }
  return toAsciiJson({ object: 'whatsapp_business_account', entry })
}

const shuffleItems = <T>(list: readonly T[]): T[] =>
  list
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)

/** Groups updates into webhooks of limited size, duplicated and shuffled according to the settings. */
const batchUpdates = (
  updates: readonly DueSandboxUpdate[],
  { duplicates, shuffle, batch }: SandboxSettings,
): DueSandboxUpdate[][] => {
  const repeated = Array.from({ length: duplicates + 1 }, () => updates).flat()
  const webhooks: DueSandboxUpdate[][] = []
  let bytes = Infinity
  for (const update of shuffle ? shuffleItems(repeated) : repeated) {
    const size = toAsciiJson(update.value).length + 100
    if (bytes + size > MAX_WEBHOOK_BYTES || webhooks.at(-1)!.length >= batch) {
      webhooks.push([])
      bytes = 0
    }
    webhooks.at(-1)!.push(update)
    bytes += size
  }
  return webhooks
}

const postWebhook = async (
  { appSecret, log }: SandboxOptions,
  callback: string,
  body: string,
): Promise<boolean> => {
  try {
    const response = await fetch(callback, {
      method: 'POST',
      body,
      redirect: 'error',
      signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
      headers: {
        'Content-Type': 'application/json',
        'User-Agent': 'wcrm-sandbox',
        'X-Hub-Signature-256': sign(appSecret, body),
      },
    })
    await response.text()
    if (response.status !== 200)
      log.warn({ status: response.status }, 'Sandbox webhook was not accepted with status 200')
    return response.status === 200
  } catch {
    log.warn('Sandbox webhook got no response')
    return false
  }
}

/**
 * Delivers the updates that are due within `aheadMs`. Returns the counts of updates that were attempted and
 * that the app accepted with 200.
 */
const deliverDueUpdates = async (options: SandboxOptions, aheadMs: number): Promise<DeliveryCounts> => {
  const { db, now } = options
  const counts: DeliveryCounts = { attempted: 0, accepted: 0 }
  await reviewDueTemplates(db, now())
  for (;;) {
    const updates = await claimSandboxUpdates(db, options.callbackUrl?.(), BATCH_SIZE, aheadMs)
    if (updates.length === 0) return counts
    counts.attempted += updates.length
    const settingsOf = await loadSettingsOfAccounts(db, [...new Set(updates.map((u) => u.account_id))])
    // Accounts with the same settings share webhooks.
    const groups = Map.groupBy(updates, ({ callback, account_id: account }) =>
      JSON.stringify([callback, settingsOf(account)]),
    )
    for (const own of groups.values()) {
      const [{ callback, account_id: account }] = own as [DueSandboxUpdate]
      const ids = own.map((update) => update.id)
      let accepted = true
      for (const webhook of batchUpdates(own, settingsOf(account))) {
        const posted = await postWebhook(options, callback, formatWebhook(webhook, now()))
        accepted &&= posted
      }
      if (accepted) counts.accepted += ids.length
      await (accepted ? completeSandboxUpdates(db, ids) : postponeSandboxUpdates(db, ids))
    }
  }
}

/** Delivers updates to the app, one batch after another. */
export const createUpdateDelivery = (options: SandboxOptions): UpdateDelivery => {
  let last: Promise<unknown> = Promise.resolve()
  const deliverInTurn = (aheadMs: number): Promise<DeliveryCounts> => {
    const delivery = last.then(() => deliverDueUpdates(options, aheadMs))
    last = delivery.catch(() => {})
    return delivery
  }
  const drain = async (): Promise<void> => {
    for (;;) {
      const { attempted } = await deliverInTurn(MAX_REGULAR_DELAY_MS)
      if (attempted > 0) continue
      if (!(await hasSandboxUpdatesInFlight(options.db, MAX_REGULAR_DELAY_MS))) return
      await sleep(20)
    }
  }
  let job: Job | undefined
  return {
    pump: async () => (await deliverInTurn(0)).accepted,
    drain,
    wake: () => (options.signals ? options.signals.send('job', JOB) : job?.wake()),
    start: () => {
      const started = createJob(
        createDeliveryJob(options, () => deliverInTurn(0)),
        options.log,
      )
      job = started
      started.start()
      started.wake()
      const unsubscribe = options.signals?.on('job', (name) => {
        if (name === JOB) started.wake()
      })
      return async () => {
        unsubscribe?.()
        await started.stop()
      }
    },
  }
}

const createDeliveryJob = (
  { db, now, log }: SandboxOptions,
  deliver: () => Promise<unknown>,
): JobDefinition => {
  let lastCleanup = -Infinity
  let failure: string | undefined
  return {
    name: JOB,
    intervalMs: IDLE_MS,
    run: async () => {
      try {
        await deliver()
        if (performance.now() - lastCleanup > CLEANUP_INTERVAL_MS) {
          lastCleanup = performance.now()
          await deleteStaleSandboxUpdates(db)
          await deleteExpiredSandboxMedia(db, now())
        }
        failure = undefined
        const seconds = await findSecondsUntilNextSandboxWork(db, now())
        const nextInMs = computeNextRunMs(seconds, { min: MIN_PAUSE_MS, max: IDLE_MS })
        return { nextInMs, pauseMs: MIN_PAUSE_MS }
      } catch (error) {
        const { code = 'unknown' } = error as { code?: string }
        // Once for a failure that lasts, such as a full disk.
        if (code !== failure) log.warn({ code }, 'Cannot deliver sandbox updates; retrying')
        failure = code
        return {}
      }
    },
  }
}
