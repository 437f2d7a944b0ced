import { leaseTokens } from '../../storage/access/rate-limits.ts'
import type { App } from '../app.ts'
import { noteDiskFull } from '../kernel/disk-full.ts'
import type { RateLimitBucket } from '../app-state.ts'
import type { Actor } from '../kernel/context.ts'
import type { Guard } from '../kernel/guard.ts'
import { Problem } from '../kernel/problem.ts'

/*
 * Token buckets in the database, shared by all servers. A server leases blocks of tokens and hands them out
 * from memory, so most calls cost no statement. Each server also tracks the level that the bucket would have
 * if the server were alone and grants nothing above it: one server is exact, and several grant too little
 * by at most their blocks.
 */

const WINDOW_SECONDS = 60
const MAX_BUCKETS = 50_000
/** The part of a bucket that is leased at a time. */
const LEASES = 30
/**
 * Bounds the waits for a lease while other calls take its tokens first. The last leases are of one token each, so that
 * a call in a burst may wait for many.
 */
const MAX_TAKE_ATTEMPTS = 2000

export type Allowance = { limit: number; remaining: number; window_seconds: number }

type LimitClass = 'read' | 'write'

const nowSeconds = (): number => performance.now() / 1000

/** What counts, but for the database that leases tokens. */
type Buckets = Pick<App, 'rateLimitBuckets' | 'config'>

const getBucket = (app: Buckets, id: string, capacity: number): RateLimitBucket => {
  const buckets = app.rateLimitBuckets
  const existing = buckets.get(id)
  if (existing) return existing
  if (buckets.size > MAX_BUCKETS) buckets.clear()
  const now = nowSeconds()
  const bucket = { capacity, held: 0, level: capacity, updatedAt: now, stored: capacity, storedAt: now }
  buckets.set(id, bucket)
  return bucket
}

/** Tokens per second. */
const refillRate = (bucket: RateLimitBucket): number => bucket.capacity / WINDOW_SECONDS

const refill = (bucket: RateLimitBucket): void => {
  const now = nowSeconds()
  bucket.level = Math.min(bucket.capacity, bucket.level + (now - bucket.updatedAt) * refillRate(bucket))
  bucket.updatedAt = now
}

/**
 * Leases a block of tokens from the database. What would have overflowed while this server held tokens is
 * given up, so that holding tokens never adds to the burst.
 */
const leaseBlock = async (app: App, id: string, bucket: RateLimitBucket): Promise<void> => {
  const sinceStored = nowSeconds() - bucket.storedAt
  const expected = Math.min(bucket.capacity, bucket.stored + sinceStored * refillRate(bucket))
  const surplus = Math.max(0, expected - bucket.level)
  // Less is left, less is leased, so that no token lies unused with another process at the end.
  const block = Math.max(1, Math.floor(expected / LEASES))
  const { granted, left } = await leaseTokens(
    app.db,
    id,
    bucket.capacity,
    WINDOW_SECONDS,
    block,
    surplus,
  ).catch((error: unknown) => {
    if (!noteDiskFull(app, error)) throw error
    // Reads go on: this server counts alone.
    return { granted: block, left: bucket.level }
  })
  const now = nowSeconds()
  bucket.held += granted
  bucket.stored = left
  bucket.storedAt = now
  refill(bucket)
  bucket.level = Math.min(bucket.level, left + bucket.held)
}

/** Returns true when a token was available. */
const takeFromBucket = async (app: App, id: string, bucket: RateLimitBucket): Promise<boolean> => {
  for (let attempt = 0; attempt < MAX_TAKE_ATTEMPTS; attempt++) {
    refill(bucket)
    if (bucket.level < 1) return false
    if (bucket.held >= 1) {
      bucket.held -= 1
      bucket.level -= 1
      return true
    }
    bucket.leasing ??= leaseBlock(app, id, bucket).finally(() => {
      bucket.leasing = undefined
    })
    await bucket.leasing
    if (bucket.held < 1 && bucket.level < 1) return false
  }
  return false
}

type LimitBuckets = { key: [id: string, RateLimitBucket]; workspace: [id: string, RateLimitBucket] }

const getBuckets = (app: Buckets, actor: Actor, kind: LimitClass): LimitBuckets => {
  const { key, workspace } = app.config.limits[kind]
  const keyId = `key:${actor.key.id}:${kind}`
  const workspaceId = `workspace:${actor.workspace.id}:${kind}`
  return {
    key: [keyId, getBucket(app, keyId, key)],
    workspace: [workspaceId, getBucket(app, workspaceId, workspace)],
  }
}

const getKeyBucket = (app: Buckets, actor: Actor, kind: LimitClass): RateLimitBucket =>
  getBuckets(app, actor, kind).key[1]

/** Seconds until the bucket holds `target` tokens, at least 1. */
const secondsUntil = (bucket: RateLimitBucket, target: number): number =>
  Math.max(1, Math.ceil((target - bucket.level) / refillRate(bucket)))

const rateLimitHeaders = (kind: LimitClass | 'channel', bucket: RateLimitBucket): Record<string, string> => {
  const remaining = Math.max(0, Math.floor(bucket.level))
  const reset = bucket.level >= bucket.capacity ? 0 : secondsUntil(bucket, bucket.capacity)
  return {
    'RateLimit-Policy': `"${kind}";q=${bucket.capacity};w=${WINDOW_SECONDS}`,
    RateLimit: `"${kind}";r=${remaining};t=${reset}`,
  }
}

/** Returns the headers of a call that takes no token, such as one refused for its scope. */
export const peekLimits = (app: App, actor: Actor, kind: LimitClass): Record<string, string> => {
  const bucket = getKeyBucket(app, actor, kind)
  refill(bucket)
  return rateLimitHeaders(kind, bucket)
}

/** Takes a token of the key and one of the workspace. Returns the headers to send; throws 429. */
export const takeToken = async (
  app: App,
  actor: Actor,
  kind: LimitClass,
): Promise<Record<string, string>> => {
  const { key, workspace } = getBuckets(app, actor, kind)
  const violated: [policy: string, RateLimitBucket] | undefined = !(await takeFromBucket(app, ...key))
    ? [kind, key[1]]
    : !(await takeFromBucket(app, ...workspace))
      ? [`workspace-${kind}`, workspace[1]]
      : undefined
  const headers = rateLimitHeaders(kind, key[1])
  if (!violated) return headers
  const [policy, bucket] = violated
  const owner = policy === kind ? 'this key' : 'this workspace'
  const wait = secondsUntil(bucket, 1)
  throw new Problem(
    'rate_limited',
    `${bucket.capacity} ${kind} requests per minute are allowed for ${owner}; try again in ${wait} s.`,
    { violated_policies: [policy] },
    { ...headers, 'Retry-After': String(wait) },
  )
}

/**
 * Takes a token of a channel's bridge, which has no API key. Returns the headers to send; throws 429.
 */
export const takeChannelToken = async (
  app: App,
  workspaceId: string,
  channelId: string,
): Promise<Record<string, string>> => {
  const id = `channel:${workspaceId}:${channelId}`
  const bucket = getBucket(app, id, app.config.limits.channel)
  const hasToken = await takeFromBucket(app, id, bucket)
  const headers = rateLimitHeaders('channel', bucket)
  if (hasToken) return headers
  const wait = secondsUntil(bucket, 1)
  throw new Problem(
    'rate_limited',
    `${bucket.capacity} requests per minute are allowed for this channel; try again in ${wait} s.`,
    { violated_policies: ['channel'] },
    { ...headers, 'Retry-After': String(wait) },
  )
}

/** Returns the remaining limits of the key, for `workspace_whoami`. */
export const getAllowances = (app: Buckets, actor: Actor): { read: Allowance; write: Allowance } => {
  const allowance = (kind: LimitClass): Allowance => {
    const bucket = getKeyBucket(app, actor, kind)
    refill(bucket)
    return {
      limit: bucket.capacity,
      remaining: Math.max(0, Math.floor(bucket.level)),
      window_seconds: WINDOW_SECONDS,
    }
  }
  return { read: allowance('read'), write: allowance('write') }
}

/** Every response says what is left, also that of a call that takes no token. */
export const shownLimits: Guard<App> = {
  admit: (app, { actor, kind, headers }) => {
    Object.assign(headers, peekLimits(app, actor, kind))
  },
}

export const rateLimits: Guard<App> = {
  admit: async (app, { actor, kind, headers }) => {
    Object.assign(headers, await takeToken(app, actor, kind))
  },
}
