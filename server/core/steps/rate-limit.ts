import { leaseTokens } from '../../../storage/rate-limits.ts'
import type { App } from '../../app.ts'
import type { Actor, Allowance } from '../context.ts'
import { Problem } from '../problem.ts'

/**
 * Token buckets in the database, shared by all servers; a server takes blocks of tokens and hands them out
 * from memory, so most calls cost no statement. Each server also keeps the level that the bucket would have
 * if it were alone: nothing is granted above it, so one server is exact, and several are short by at most
 * their blocks.
 */
const WINDOW_SECONDS = 60
/** A workspace as a whole has this many times a key's limit. */
export const WORKSPACE_FACTOR = 10

type LimitClass = 'read' | 'write'
type Bucket = {
  capacity: number
  held: number
  level: number
  at: number
  stored: number
  storedAt: number
  leasing?: Promise<void> | undefined
}
export type RateMemory = Map<string, Bucket>

const seconds = (): number => performance.now() / 1000

const bucketOf = (app: App, id: string, capacity: number): Bucket => {
  const known = app.rateMemory.get(id)
  if (known) return known
  if (app.rateMemory.size > 50_000) app.rateMemory.clear()
  const now = seconds()
  const bucket: Bucket = { capacity, held: 0, level: capacity, at: now, stored: capacity, storedAt: now }
  app.rateMemory.set(id, bucket)
  return bucket
}

const rate = (bucket: Bucket): number => bucket.capacity / WINDOW_SECONDS

const refill = (bucket: Bucket): void => {
  const now = seconds()
  bucket.level = Math.min(bucket.capacity, bucket.level + (now - bucket.at) * rate(bucket))
  bucket.at = now
}

/**
 * Takes a block from the database. What would have overflowed while we held tokens is given up, so that
 * holding never adds to the burst.
 */
const lease = async (app: App, id: string, bucket: Bucket): Promise<void> => {
  const believed = Math.min(bucket.capacity, bucket.stored + (seconds() - bucket.storedAt) * rate(bucket))
  const surplus = Math.max(0, believed - bucket.level)
  const block = Math.max(1, Math.floor(bucket.capacity / 30))
  const { granted, left } = await leaseTokens(app.db, id, bucket.capacity, WINDOW_SECONDS, block, surplus)
  const now = seconds()
  bucket.held += granted
  bucket.stored = left
  bucket.storedAt = now
  refill(bucket)
  bucket.level = Math.min(bucket.level, left + bucket.held)
}

const takeOne = async (app: App, id: string, bucket: Bucket): Promise<boolean> => {
  for (let attempt = 0; attempt < 100; attempt++) {
    refill(bucket)
    if (bucket.level < 1) return false
    if (bucket.held >= 1) {
      bucket.held -= 1
      bucket.level -= 1
      return true
    }
    bucket.leasing ??= lease(app, id, bucket).finally(() => {
      bucket.leasing = undefined
    })
    await bucket.leasing
    if (bucket.held < 1 && bucket.level < 1) return false
  }
  return false
}

type Limits = { key: [string, Bucket]; workspace: [string, Bucket] }

const limitsOf = (app: App, actor: Actor, kind: LimitClass): Limits => {
  const { key, workspace } = app.config.limits[kind]
  const keyId = `key:${actor.key.id}:${kind}`
  const workspaceId = `workspace:${actor.workspace.id}:${kind}`
  return {
    key: [keyId, bucketOf(app, keyId, key)],
    workspace: [workspaceId, bucketOf(app, workspaceId, workspace)],
  }
}

/** Seconds until the bucket holds one token, or is full again. */
const secondsUntil = (bucket: Bucket, target: number): number =>
  Math.max(1, Math.ceil((target - bucket.level) / rate(bucket)))

const headersOf = (kind: LimitClass, bucket: Bucket): Record<string, string> => ({
  'RateLimit-Policy': `"${kind}";q=${bucket.capacity};w=${WINDOW_SECONDS}`,
  RateLimit: `"${kind}";r=${Math.max(0, Math.floor(bucket.level))};t=${bucket.level >= bucket.capacity ? 0 : secondsUntil(bucket, bucket.capacity)}`,
})

/** The headers of a call that takes no token, such as one refused for its scope. */
export const peekLimits = (app: App, actor: Actor, kind: LimitClass): Record<string, string> => {
  const {
    key: [, bucket],
  } = limitsOf(app, actor, kind)
  refill(bucket)
  return headersOf(kind, bucket)
}

/** Takes a token of the key and of the workspace, or refuses with 429. Answers the headers to send. */
export const takeToken = async (
  app: App,
  actor: Actor,
  kind: LimitClass,
): Promise<Record<string, string>> => {
  const { key, workspace } = limitsOf(app, actor, kind)
  const violated: [string, Bucket] | undefined = !(await takeOne(app, ...key))
    ? [kind, key[1]]
    : !(await takeOne(app, ...workspace))
      ? [`workspace-${kind}`, workspace[1]]
      : undefined
  const headers = headersOf(kind, key[1])
  if (!violated) return headers
  const [policy, bucket] = violated
  const noun = kind === 'read' ? 'reading' : 'changing'
  const whose = policy === kind ? 'this key' : 'this workspace'
  const wait = secondsUntil(bucket, 1)
  throw new Problem(
    'rate_limited',
    `${bucket.capacity} ${noun} requests per minute for ${whose}; try again in ${wait} s.`,
    { 'violated-policies': [policy] },
    { ...headers, 'Retry-After': String(wait) },
  )
}

/** What is left, for `workspace_whoami`. */
export const allowances = (app: App, actor: Actor): { read: Allowance; write: Allowance } => {
  const one = (kind: LimitClass): Allowance => {
    const {
      key: [, bucket],
    } = limitsOf(app, actor, kind)
    refill(bucket)
    return {
      limit: bucket.capacity,
      remaining: Math.max(0, Math.floor(bucket.level)),
      window_seconds: WINDOW_SECONDS,
    }
  }
  return { read: one('read'), write: one('write') }
}
