import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import {
  computeSecretFingerprint,
  createSecretRing,
  followSecret,
  getKeyId,
  requireKnownSecret,
} from '../../server/secret.ts'
import { sealAccountSecret, unsealAccount } from '../../server/provider/account-secrets.ts'
import { insertProviderAccount, listSealedAccounts } from '../../storage/channels/provider-accounts.ts'
import { secretRotationJob } from '../../server/jobs/reseal.ts'
import { createSealer } from '../../server/sealer.ts'
import { createDatabase, databases, type TestDatabase } from '../databases.ts'
import { doorsOf } from '../doors.ts'
import { makeWorkspace, serveStorage, type TestServer, type TestWorkspace } from '../servers.ts'
import type { Db } from '../../storage/database.ts'
import { openStorage, type Storage } from '../../storage/open.ts'
import { countSealed, findResealedFingerprint } from '../../storage/access/secrets.ts'
import { createEndpoint, loadStored } from '../webhooks/endpoint-fixture.ts'

const OLD = 'the old secret of this database'
const NEW = 'the new secret of this database'
const keyOf = (secret: string): string => getKeyId(computeSecretFingerprint(secret))
const SECRET_OPERATIONS = ['webhooks_create_endpoint', 'webhooks_rotate_secret']

const countStale = async (db: Db, secret: string): Promise<number> =>
  (await countSealed(db, SECRET_OPERATIONS, keyOf(secret))).stale

/** Joins the servers of the database, as a start does on PostgreSQL, where servers may be many. */
const join = async ({ app, db }: TestServer): Promise<void> =>
  requireKnownSecret({ db, embedded: false }, app.secrets)

const runJob = ({ app }: TestServer): Promise<number> => app.jobs.job('secret-rotation').runOnce()

/** Makes a server that stopped without saying so long dead, and a rotation long ago. */
const letTimePass = async (db: Db): Promise<void> => {
  await sql`update servers set seen_at = seen_at - interval '1 hour'`.execute(db)
  await sql`
    update settings set value = (value::float8 - 3600)::text where key = 'secret_moved_at'`.execute(db)
}

/** Everything that a secret seals: what is stored, and what a client holds. */
const createSealedValues = async (server: TestServer, workspace: TestWorkspace) => {
  const rest = doorsOf(server.url, workspace.owner.key)[0]!
  const create = { idempotencyKey: 'create-an-endpoint' }
  const created = await rest.call('webhooks_create_endpoint', { url: 'https://example.com/one' }, create)
  await createEndpoint(rest.call, { custom_headers: { 'X-Team': 'Sales' } })
  const id: string = created.body.endpoint.id
  const agent = await workspace.key(workspace.owner.staffId, { agent: true })
  const asked = { url: 'https://example.com/two', custom_headers: { 'X-Team': 'Support' } }
  const { status } = await doorsOf(server.url, agent.key)[0]!.call('webhooks_create_endpoint', asked)
  assert.equal(status, 202)
  const rotate = { idempotencyKey: 'rotate-its-secret', confirm: 'rotate' }
  const rotated = await rest.call('webhooks_rotate_secret', { endpoint_id: id }, rotate)
  const account = { workspace_id: workspace.id, account_id: `77${workspace.id}` }
  const seal = (what: 'token' | 'app_secret') =>
    sealAccountSecret(server.app.accountSealer, account, what, `the ${what}`)
  await insertProviderAccount(
    server.db,
    workspace.id,
    account.account_id,
    { token: seal('token'), app_secret: seal('app_secret') },
    server.app.now(),
  )
  const page = await rest.call('webhooks_list_endpoints', { limit: 1 })
  return { id, created, rotated, cursor: page.body.next_cursor as string }
}

/** Checks that a server opens all of them. */
const assertOpens = async (
  server: TestServer,
  workspace: TestWorkspace,
  { id, created, rotated, cursor }: Awaited<ReturnType<typeof createSealedValues>>,
): Promise<void> => {
  const rest = doorsOf(server.url, workspace.owner.key)[0]!
  const stored = await loadStored(server, workspace.id, id)
  assert.deepEqual(stored.secrets, [rotated.body.signing_secret, created.body.signing_secret])
  const [account] = await listSealedAccounts(server.db, [`77${workspace.id}`])
  const opened = unsealAccount(server.app.accountSealer, account!)
  assert.deepEqual([opened?.token, opened?.appSecret], ['the token', 'the app_secret'])
  const create = { idempotencyKey: 'create-an-endpoint' }
  const replay = await rest.call('webhooks_create_endpoint', { url: 'https://example.com/one' }, create)
  assert.deepEqual([replay.status, replay.text], [201, created.text])
  const rotate = { idempotencyKey: 'rotate-its-secret', confirm: 'rotate' }
  const again = await rest.call('webhooks_rotate_secret', { endpoint_id: id }, rotate)
  assert.deepEqual([again.status, again.text], [200, rotated.text])
  assert.equal((await rest.call('webhooks_list_endpoints', { limit: 1, cursor })).status, 200)
}

for (const database of databases) {
  describe(`Rotation of the secret (${database})`, () => {
    let created: TestDatabase
    let storage: Storage
    before(async () => {
      created = await createDatabase(database)
      storage = await openStorage(created.location)
    })
    after(async () => {
      await storage.close()
      await created.remove()
    })
    const serve = (...secrets: string[]) => serveStorage(storage, database, { secrets })

    it('a new secret beside the old one takes over while servers run, and all that is stored follows', async () => {
      const old = await serve(OLD)
      await join(old)
      const workspace = await makeWorkspace(old)
      const values = await createSealedValues(old, workspace)

      const next = await serve(NEW, OLD)
      await join(next)
      await runJob(next)
      assert.equal(next.app.secrets.current, computeSecretFingerprint(OLD), 'the old server cannot open more')
      assert.equal(await countStale(storage.db, OLD), 0)
      await assertOpens(next, workspace, values)
      // What either seals in a rolling restart, the other opens.
      const meanwhile = await createEndpoint(doorsOf(next.url, workspace.owner.key)[0]!.call)
      assert.equal((await loadStored(old, workspace.id, meanwhile.body.endpoint.id)).secrets.length, 1)

      await old.close()
      assert.equal(
        await runJob(next),
        9,
        'three endpoints, an account, four responses and a request for an approval',
      )
      assert.equal(next.app.secrets.current, computeSecretFingerprint(NEW))
      assert.equal(await countStale(storage.db, NEW), 0)
      assert.notEqual(await findResealedFingerprint(storage.db), computeSecretFingerprint(NEW))
      await letTimePass(storage.db)
      await runJob(next)
      assert.equal(await findResealedFingerprint(storage.db), computeSecretFingerprint(NEW))
      await assertOpens(next, workspace, values)

      await assert.rejects(requireKnownSecret(storage, createSecretRing([OLD])), /another secret.*PREVIOUS/)
      const last = await serve(NEW)
      await join(last)
      const { secrets } = await loadStored(last, workspace.id, values.id)
      assert.deepEqual(secrets, [values.rotated.body.signing_secret, values.created.body.signing_secret])
      await Promise.all([next.close(), last.close()])
    })

    it('several servers seal again at once what one of them left half done', async () => {
      await sql`delete from servers`.execute(storage.db)
      await sql`delete from settings where key like 'secret%'`.execute(storage.db)
      const [one, two] = [await serve(NEW, OLD), await serve(NEW, OLD)]
      await join(one)
      await join(two)
      const workspace = await makeWorkspace(one)
      const sealer = createSealer(createSecretRing([OLD]), 'answers')
      const rows = Array.from({ length: 150 }, (_, n) => ({
        key: `sealed-response-${n}`,
        body: sealer.seal(`{"n":${n}}`, `${workspace.id} ${workspace.owner.staffId} sealed-response-${n}`),
      }))
      await sql`
        insert into idempotency (workspace_id, staff_id, key, operation, fingerprint, state, status, body,
          created_at, expires_at)
        select ${workspace.id}, ${workspace.owner.staffId}, r.key, 'webhooks_rotate_secret', '', 'done', 200,
          r.body, clock_timestamp(), clock_timestamp() + interval '1 day'
        from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as r (key text, body text)`.execute(
        storage.db,
      )
      const stopped = await secretRotationJob(one.app).run(AbortSignal.abort())
      assert.equal(stopped.processed, 0)
      assert.ok((await countStale(storage.db, NEW)) >= 150)
      const counts = await Promise.all([runJob(one), runJob(two)])
      assert.ok(counts[0] + counts[1] >= 150, counts.join(' + '))
      assert.equal(await countStale(storage.db, NEW), 0)
      const { body } = await storage.db
        .selectFrom('idempotency')
        .select('body')
        .where('key', '=', 'sealed-response-149')
        .executeTakeFirstOrThrow()
      const binding = `${workspace.id} ${workspace.owner.staffId} sealed-response-149`
      assert.equal(createSealer(createSecretRing([NEW]), 'answers').open(body!, binding), '{"n":149}')
      await Promise.all([one.close(), two.close()])
    })

    it('a server that comes back with an outdated secret says so and keeps it', async () => {
      await sql`delete from servers`.execute(storage.db)
      await sql`delete from settings where key like 'secret%'`.execute(storage.db)
      const ring = createSecretRing([OLD])
      assert.ok(await followSecret(storage.db, ring))
      // It was silent for longer than servers may be, so the others went on without it.
      await letTimePass(storage.db)
      const next = createSecretRing([NEW, OLD])
      assert.ok(await followSecret(storage.db, next))
      assert.equal(next.current, computeSecretFingerprint(NEW))
      assert.equal(await followSecret(storage.db, ring), false)
      assert.equal(ring.current, computeSecretFingerprint(OLD))
    })

    it('a server with an outdated secret is not ready, and repeats no sealed answer', async () => {
      await sql`delete from servers`.execute(storage.db)
      await sql`delete from settings where key like 'secret%'`.execute(storage.db)
      const behind = await serve(OLD)
      await join(behind)
      assert.equal((await fetch(`${behind.url}/readyz`)).status, 200)
      await letTimePass(storage.db)
      const ahead = await serve(NEW, OLD)
      await join(ahead)
      const workspace = await makeWorkspace(ahead)
      const input = { url: 'https://example.com/one' }
      const options = { idempotencyKey: 'create-an-endpoint' }
      const [call, repeat] = [ahead, behind].map(({ url }) => doorsOf(url, workspace.owner.key)[0]!.call)
      assert.equal((await call!('webhooks_create_endpoint', input, options)).status, 201)
      await runJob(behind)
      assert.equal((await fetch(`${behind.url}/readyz`)).status, 503)
      const answer = await repeat!('webhooks_create_endpoint', input, options)
      assert.deepEqual([answer.status, answer.body.reason], [503, 'secret_outdated'])
      assert.equal((await call!('webhooks_list_endpoints')).body.data.length, 1)
      await Promise.all([behind.close(), ahead.close()])
    })

    it('of servers that know both secrets, the last one started decides, once', async () => {
      await sql`delete from servers`.execute(storage.db)
      await sql`delete from settings where key like 'secret%'`.execute(storage.db)
      const [one, two] = [createSecretRing([OLD, NEW]), createSecretRing([NEW, OLD])]
      await followSecret(storage.db, one)
      await followSecret(storage.db, two)
      for (const ring of [one, two, one, two]) {
        await followSecret(storage.db, ring)
        assert.equal(ring.current, computeSecretFingerprint(NEW))
      }
    })
  })
}

describe('Sealed values', () => {
  it('name their key; those from before rotation open too; others do not', () => {
    const sealer = createSealer(createSecretRing([NEW, OLD]), 'cursors')
    const sealed = sealer.seal('text', 'binding')
    assert.ok(sealed.startsWith(`${keyOf(NEW)}.`))
    const old = createSealer(createSecretRing([OLD]), 'cursors').seal('old text', 'binding')
    assert.equal(sealer.open(old, 'binding'), 'old text')
    assert.equal(sealer.open(old.split('.')[1]!, 'binding'), 'old text', 'without the id of a key')
    const foreign = createSealer(createSecretRing(['a secret of another database']), 'cursors')
    for (const bad of [
      foreign.seal('text', 'binding'),
      sealer.seal('text', 'another binding'),
      createSealer(createSecretRing([NEW]), 'media').seal('text', 'binding'),
      `${keyOf(OLD)}.${sealed.split('.')[1]}`,
      `${sealed}A`,
      '.',
      '',
    ])
      assert.equal(sealer.open(bad, 'binding'), undefined, bad)
  })
})
