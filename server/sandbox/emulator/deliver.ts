import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { dropExpiredMedia } from '../../../storage/sandbox/files.ts'
import { readSandboxSettings, type SandboxSettings } from '../../../storage/sandbox/settings.ts'
import {
  areUpdatesUnderWay,
  dropStaleUpdates,
  type DueUpdate,
  finishUpdates,
  postponeUpdates,
  takeUpdates,
} from '../../../storage/sandbox/updates.ts'
import { type SandboxOptions, unixOf } from './call.ts'
import { reviewDue } from './reviewer.ts'

const AT_ONCE = 1000
/** The provider's webhooks are 3 MB at most. */
const MOST_BYTES = 2_900_000
const ANSWER_MS = 10_000
const POLL_MS = 200
/** No update that is on time is due later than this. */
const USUAL_MS = 1_000
const CHORES_MS = 600_000

export type Delivery = {
  pump: () => Promise<number>
  settle: () => Promise<void>
  start: () => () => Promise<void>
}

/** The provider escapes what is not ASCII in the bytes that it signs. */
const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

const signatureOf = (appSecret: string, body: string): string =>
  `sha256=${createHmac('sha256', appSecret).update(body).digest('hex')}`

/** One body; neighbours of one account share an entry, so that the order stays. */
const envelope = (updates: readonly DueUpdate[], now: string): string => {
  const entry: { id: string; time: number; changes: { value: unknown; field: string }[] }[] = []
  for (const { account_id: id, value, field } of updates) {
    if (entry.at(-1)?.id !== id) entry.push({ id, time: Number(unixOf(now)), changes: [] })
    entry.at(-1)!.changes.push({ value, field })
  }
  return asciiJson({ object: 'whatsapp_business_account', entry })
}

const shuffled = <T>(list: readonly T[]): T[] =>
  list
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)

/**
 * The updates as they go out: repeated and mixed as the settings have it, in webhooks that are not too
 * large.
 */
const webhooksOf = (
  updates: readonly DueUpdate[],
  { duplicates, shuffle, batch }: SandboxSettings,
): DueUpdate[][] => {
  const repeated = Array.from({ length: duplicates + 1 }, () => updates).flat()
  const webhooks: DueUpdate[][] = []
  let bytes = Infinity
  for (const update of shuffle ? shuffled(repeated) : repeated) {
    const size = asciiJson(update.value).length + 100
    if (bytes + size > MOST_BYTES || webhooks.at(-1)!.length >= batch) {
      webhooks.push([])
      bytes = 0
    }
    webhooks.at(-1)!.push(update)
    bytes += size
  }
  return webhooks
}

const post = async ({ appSecret, log }: SandboxOptions, callback: string, body: string): Promise<boolean> => {
  try {
    const answer = await fetch(callback, {
      method: 'POST',
      body,
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_MS),
      headers: {
        'Content-Type': 'application/json',
        'User-Agent': 'wcrm-sandbox',
        'X-Hub-Signature-256': signatureOf(appSecret, body),
      },
    })
    await answer.text()
    if (answer.status !== 200)
      log.warn({ status: answer.status }, 'sandbox: a webhook was not answered with 200')
    return answer.status === 200
  } catch {
    log.warn('sandbox: a webhook was not answered')
    return false
  }
}

/**
 * Delivers what is due, or will be within `aheadMs`; answers how many updates were tried and how many were
 * taken with 200.
 */
const deliver = async (
  options: SandboxOptions,
  aheadMs: number,
): Promise<{ tried: number; done: number }> => {
  const { db, now } = options
  const result = { tried: 0, done: 0 }
  await reviewDue(db, now())
  for (;;) {
    const updates = await takeUpdates(db, options.callbackUrl?.(), AT_ONCE, aheadMs)
    if (updates.length === 0) return result
    result.tried += updates.length
    const settings = await readSandboxSettings(db)
    for (const [callback, own] of Map.groupBy(updates, (update) => update.callback)) {
      const ids = own.map((update) => update.id)
      let taken = true
      for (const webhook of webhooksOf(own, settings))
        taken = (await post(options, callback, envelope(webhook, now()))) && taken
      if (taken) result.done += ids.length
      await (taken ? finishUpdates(db, ids) : postponeUpdates(db, ids))
    }
  }
}

/** Carries updates to the app, one batch after another. */
export const createDelivery = (options: SandboxOptions): Delivery => {
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = (aheadMs: number): Promise<{ tried: number; done: number }> => {
    const mine = last.then(() => deliver(options, aheadMs))
    last = mine.catch(() => {})
    return mine
  }
  const settle = async (): Promise<void> => {
    for (;;) {
      const { tried } = await inTurn(USUAL_MS)
      if (tried > 0) continue
      if (!(await areUpdatesUnderWay(options.db, USUAL_MS))) return
      await sleep(20)
    }
  }
  return {
    pump: async () => (await inTurn(0)).done,
    settle,
    start: () =>
      startPump(options, async () => {
        await inTurn(0)
      }),
  }
}

const startPump = ({ db, now, log }: SandboxOptions, pump: () => Promise<void>): (() => Promise<void>) => {
  const stopping = new AbortController()
  const run = async (): Promise<void> => {
    let cleaned = -Infinity
    while (!stopping.signal.aborted) {
      try {
        await pump()
        if (performance.now() - cleaned > CHORES_MS) {
          cleaned = performance.now()
          await dropStaleUpdates(db)
          await dropExpiredMedia(db, now())
        }
      } catch (error) {
        log.warn(
          { code: (error as { code?: string }).code },
          'sandbox: updates could not be delivered; they are tried again',
        )
      }
      await sleep(POLL_MS, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
    }
  }
  const running = run()
  return async () => {
    stopping.abort()
    await running
  }
}
