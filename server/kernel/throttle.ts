import type { FailureBucket, Kernel } from './kernel.ts'
import { toClientNetwork } from '../client-address.ts'
import { Problem } from './problem.ts'

/*
 * Failed authentications of each client network: a token bucket in this server's memory. Only failures take
 * tokens. Once there are none, further attempts are refused before the database is asked.
 */

const WINDOW_MS = 60_000
/** The longest known network is forgotten first. */
const MAX_NETWORKS = 10_000

/** A look-up has waited for others long enough: the database does not answer them. */
const MAX_WAIT_MS = 5000

/** What failed to prove itself. */
type CredentialKind =
  | 'api_key'
  | 'channel_token'
  | 'login_code'
  | 'media_url'
  | 'metrics_token'
  | 'provider_webhook'

const getBucket = ({ failureBuckets, config }: Kernel, network: string): FailureBucket => {
  const existing = failureBuckets.get(network)
  if (existing) return existing
  if (failureBuckets.size >= MAX_NETWORKS) failureBuckets.delete(failureBuckets.keys().next().value!)
  const bucket: FailureBucket = {
    level: config.authFailureLimit,
    updatedAt: performance.now(),
    pending: new Set(),
  }
  failureBuckets.set(network, bucket)
  return bucket
}

const refill = ({ config }: Kernel, bucket: FailureBucket): number => {
  const now = performance.now()
  const refilled = ((now - bucket.updatedAt) / WINDOW_MS) * config.authFailureLimit
  bucket.level = Math.min(config.authFailureLimit, bucket.level + refilled)
  bucket.updatedAt = now
  return bucket.level
}

const throttledProblem = (app: Kernel, { level }: FailureBucket, address: string | undefined): Problem => {
  const limit = app.config.authFailureLimit
  const wait = Math.max(1, Math.ceil(((1 - level) * WINDOW_MS) / limit / 1000))
  return new Problem(
    'rate_limited',
    `${address ?? 'This client'} failed to authenticate too often (${limit} times a minute are allowed). ` +
      `Check the key, then try again in ${wait} s.`,
    { reason: 'too_many_failures', violated_policies: ['failed-authentications'] },
    { 'Retry-After': String(wait) },
  )
}

/** Counts a failure. Throws 429 instead when there were too many. */
export const countFailure = (app: Kernel, address: string | undefined, kind: CredentialKind): void => {
  const bucket = getBucket(app, toClientNetwork(address))
  const isThrottled = refill(app, bucket) < 1
  app.metrics.authFailures.inc({ kind, outcome: isThrottled ? 'throttled' : 'refused' })
  if (isThrottled) throw throttledProblem(app, bucket, address)
  bucket.level -= 1
}

/**
 * Looks up a key that is not known to be good; undefined when it is none, which counts as a failure. Throws 429
 * without a look-up when there were too many failures. Look-ups under way may turn out to be failures, so when
 * they could use up what is left, this one waits for them rather than be refused.
 */
export const lookUpLimited = async <T>(
  app: Kernel,
  address: string | undefined,
  lookUp: () => Promise<T | undefined>,
  kind: CredentialKind = 'api_key',
): Promise<T | undefined> => {
  const network = toClientNetwork(address)
  const bucket = getBucket(app, network)
  const startedAt = performance.now()
  while (refill(app, bucket) >= 1 && bucket.level - bucket.pending.size < 1) {
    await Promise.race(bucket.pending)
    if (performance.now() - startedAt > MAX_WAIT_MS)
      throw new Problem(
        'upstream_unavailable',
        'The key could not be checked in time. Send the request again.',
        {},
        { 'Retry-After': '1' },
      )
  }
  if (bucket.level < 1) {
    app.metrics.authFailures.inc({ kind, outcome: 'throttled' })
    throw throttledProblem(app, bucket, address)
  }
  const found = lookUp()
  const settled = found.then(
    () => {},
    () => {},
  )
  bucket.pending.add(settled)
  try {
    const result = await found
    if (result === undefined) {
      bucket.level -= 1
      app.metrics.authFailures.inc({ kind, outcome: 'refused' })
    }
    return result
  } finally {
    bucket.pending.delete(settled)
    if (bucket.pending.size === 0 && refill(app, bucket) >= app.config.authFailureLimit)
      app.failureBuckets.delete(network)
  }
}
