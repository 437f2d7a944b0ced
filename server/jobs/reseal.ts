import {
  findResealedFingerprint,
  isSecretSettled,
  listStaleAccounts,
  listStaleEndpoints,
  listStaleResponses,
  recordResealed,
  removeServer,
  replaceSealedAccount,
  replaceSealedEndpoint,
  replaceSealedResponse,
  type SealedEndpoint,
  type SealedResponse,
} from '../../storage/access/secrets.ts'
import {
  listStaleApprovals,
  replaceSealedApproval,
  type SealedApproval,
} from '../../storage/agents/approval-secrets.ts'
import type { SealedAccount } from '../../storage/channels/provider-accounts.ts'
import {
  listStaleChannels,
  replaceSealedChannel,
  type SealedChannel,
} from '../../storage/channels/secrets.ts'
import { resealApproval } from '../guards/agents/approvals/stored-call.ts'
import { resealChannel } from '../domains/channels/secrets.ts'
import type { App } from '../app.ts'
import { resealBody } from '../kernel/idempotency.ts'
import { resealAccount } from '../provider/account-secrets.ts'
import { followSecret, getKeyId } from '../secret.ts'
import { resealEndpoint } from '../domains/webhooks/secrets.ts'
import { getIdleMs, type JobDefinition } from '../work/runner.ts'

/** Values that no configured secret opens stay so until a server is started with the secret they need. */
const RETRY_UNREADABLE_MS = 10 * 60_000
const PAGE_SIZE = 100

type Counts = { resealed: number; unreadable: number }

/** Seals each row of the pages again. A row that another server changed meanwhile needs nothing. */
const resealPages = async <Row>(
  list: (after: Row | undefined) => Promise<Row[]>,
  reseal: (row: Row) => Promise<boolean> | undefined,
  signal: AbortSignal,
): Promise<Counts> => {
  const counts = { resealed: 0, unreadable: 0 }
  for (let page = await list(undefined); page.length > 0; page = await list(page.at(-1))) {
    for (const row of page) {
      if (signal.aborted) return counts
      const replaced = reseal(row)
      if (replaced === undefined) counts.unreadable++
      else if (await replaced) counts.resealed++
    }
  }
  return counts
}

/**
 * Seals every stored value that a previous secret sealed again with the current one. It can be interrupted
 * and run on several servers: a value that is done is not found again.
 */
const resealStored = async (app: App, signal: AbortSignal): Promise<Counts> => {
  const { db, secrets } = app
  const keyId = getKeyId(secrets.current)
  const endpoints = await resealPages(
    (after: SealedEndpoint | undefined) => listStaleEndpoints(db, keyId, after, PAGE_SIZE),
    (row) => {
      const resealed = resealEndpoint(app, row, app.now())
      return resealed && replaceSealedEndpoint(db, row, resealed)
    },
    signal,
  )
  const accounts = await resealPages(
    (after: SealedAccount | undefined) => listStaleAccounts(db, keyId, after, PAGE_SIZE),
    (row) => {
      const resealed = resealAccount(app.accountSealer, row)
      return resealed && replaceSealedAccount(db, row, resealed)
    },
    signal,
  )
  const channels = await resealPages(
    (after: SealedChannel | undefined) => listStaleChannels(db, keyId, after, PAGE_SIZE),
    (row) => {
      const resealed = resealChannel(app, row)
      return resealed && replaceSealedChannel(db, row, resealed)
    },
    signal,
  )
  const approvals = await resealPages(
    (after: SealedApproval | undefined) => listStaleApprovals(db, keyId, after, PAGE_SIZE),
    (row) => {
      const resealed = resealApproval(app, row)
      return resealed === undefined ? undefined : replaceSealedApproval(db, row, resealed)
    },
    signal,
  )
  const operations = app.operations.filter((op) => op.secret).map((op) => op.name)
  const responses = await resealPages(
    (after: SealedResponse | undefined) => listStaleResponses(db, operations, keyId, after, PAGE_SIZE),
    (row) => {
      const body = resealBody(app, row)
      return body === undefined ? undefined : replaceSealedResponse(db, row, body)
    },
    signal,
  )
  const all = [endpoints, accounts, channels, approvals, responses]
  const sum = (name: keyof Counts): number => all.reduce((total, counts) => total + counts[name], 0)
  return { resealed: sum('resealed'), unreadable: sum('unreadable') }
}

/** Follows the rotation of the secret, and seals what is stored again after one. */
export const secretRotationJob = (app: App): JobDefinition => {
  const { db, secrets, log } = app
  let resealedSoFar = 0
  let notBefore = 0
  return {
    name: 'secret-rotation',
    intervalMs: getIdleMs(app),
    everywhere: true,
    run: async (signal) => {
      const { current: before, isOutdated: wasOutdated } = secrets
      const isKnown = await followSecret(db, secrets)
      if (!isKnown && !wasOutdated)
        log.error(
          'The other servers went on to a secret that this server was not given: what they seal cannot be ' +
            'opened here. Restart it with the WCRM_SECRET that they have.',
        )
      if (!isKnown) return {}
      if (secrets.current !== before) log.info({ key: getKeyId(secrets.current) }, 'A new secret seals now')
      if (performance.now() < notBefore || (await findResealedFingerprint(db)) === secrets.current) return {}
      // Before the pass: while another server may still seal with the previous secret, it is not the last.
      const isLast = await isSecretSettled(db)
      const { resealed, unreadable } = await resealStored(app, signal)
      resealedSoFar += resealed
      if (unreadable > 0) {
        log.warn({ resealed, unreadable }, 'Stored values were sealed with a secret that this server lacks')
        notBefore = performance.now() + RETRY_UNREADABLE_MS
      } else if (isLast && !signal.aborted) {
        await recordResealed(db, secrets.current)
        if (resealedSoFar > 0)
          log.info({ resealed: resealedSoFar }, 'All stored values are sealed with the current secret')
        resealedSoFar = 0
      }
      return { processed: resealed }
    },
    // A server that cannot say that it stops counts as dead soon.
    drain: () => removeServer(db, secrets.serverId).catch(() => {}),
  }
}
