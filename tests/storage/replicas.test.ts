import { mayReadReplica } from '../../server/kernel/read.ts'
import assert from 'node:assert/strict'
import { after, before, describe, it, test } from 'node:test'
import { sql } from 'kysely'
import { catalog } from '../../catalog/index.ts'
import { type Cluster, postgresBinaries, startCluster } from '../../scripts/cluster.ts'
import { migrate } from '../../storage/migrations/migrate.ts'
import { openStorage, type Storage } from '../../storage/open.ts'
import { createReplica, shareQuestion } from '../../storage/client/replicas.ts'
import { databases } from '../databases.ts'
import { doorsOf } from '../doors.ts'
import { makeWorkspace, serveStorage, type TestServer, type TestWorkspace } from '../servers.ts'
import { buildExampleInputs, seedWorld } from '../world.ts'

const skip = databases.includes('postgresql') ? false : 'PostgreSQL is not installed'

describe('A replica for reads', { skip }, () => {
  let primary: Cluster
  let standby: Cluster
  let isGone = false
  let storage: Storage
  let admin: Storage
  let onStandby: Storage
  let server: TestServer
  let workspace: TestWorkspace
  before(async () => {
    const binaries = postgresBinaries()!
    primary = await startCluster(binaries)
    admin = await openStorage({ databaseUrl: primary.url }, { noTimeout: true })
    await migrate(admin.db)
    standby = await startCluster(binaries, {}, { primary: primary.url })
    onStandby = await openStorage({ databaseUrl: standby.url })
    storage = await openStorage({ databaseUrl: primary.url }, { connections: 18, readUrl: standby.url })
    server = await serveStorage(storage, 'postgresql')
    workspace = await makeWorkspace(server)
  })
  after(async () => {
    await server.close()
    await Promise.all([storage.close(), admin.close(), onStandby.close()])
    if (!isGone) standby.stop()
    primary.stop()
  })

  const doors = () => doorsOf(server.url, workspace.owner.key)
  /** The outcomes of reads since the last call. */
  const takeOutcomes = async (): Promise<Record<string, number>> => {
    const { values } = await server.app.metrics.replicaReads.get()
    server.app.metrics.replicaReads.reset()
    return Object.fromEntries(values.map(({ labels, value }) => [String(labels.outcome), value]))
  }
  const setReplay = async (paused: boolean): Promise<void> => {
    await sql`select ${sql.raw(paused ? 'pg_wal_replay_pause()' : 'pg_wal_replay_resume()')}`.execute(
      onStandby.db,
    )
    const state = sql<{ state: string }>`select pg_get_wal_replay_pause_state() as state`
    const wanted = paused ? 'paused' : 'not paused'
    while ((await state.execute(onStandby.db)).rows[0]!.state !== wanted);
  }
  /** Returns when the replica has what the primary has, and is asked again after what it missed. */
  const waitForReplica = async (): Promise<void> => {
    while ((await server.app.replica!.ask()) !== 'current');
  }
  const countGroups = async (door = doors()[0]!): Promise<number> => {
    const { status, body } = await door.call('crm_list_groups', { limit: 100 })
    assert.equal(status, 200, JSON.stringify(body))
    return body.data.length
  }
  const createGroup = async (name: string): Promise<void> => {
    assert.equal((await doors()[0]!.call('crm_create_group', { name })).status, 200)
  }

  it('answers lists through every door, and each shows what was written before it', async () => {
    await waitForReplica()
    await takeOutcomes()
    let groups = await countGroups()
    for (let i = 0; i < 30; i++) {
      await createGroup(`Group ${i}`)
      groups++
      for (const door of doors())
        if (door.name !== 'cli' || i === 0) assert.equal(await countGroups(door), groups)
    }
    const { used = 0, behind = 0, paused = 0, lost = 0, failed = 0 } = await takeOutcomes()
    assert.ok(used > 0, 'the replica was never used')
    assert.deepEqual({ lost, failed }, { lost: 0, failed: 0 })
    assert.equal(used + behind + paused, 92)
  })

  it('is not used for a read that it is too old for, and again when it has caught up', async () => {
    const groups = await countGroups()
    await setReplay(true)
    try {
      await createGroup('Written while the replica stands still')
      await takeOutcomes()
      for (let i = 0; i < 5; i++) assert.equal(await countGroups(), groups + 1)
      const { used = 0, behind = 0 } = await takeOutcomes()
      assert.deepEqual([used, behind], [0, behind])
      assert.ok(behind > 0)
    } finally {
      await setReplay(false)
    }
    await waitForReplica()
    await takeOutcomes()
    assert.equal(await countGroups(), groups + 1)
    assert.deepEqual(await takeOutcomes(), { used: 1 })
  })

  it('answers every list, search and report of the catalog: none of them writes', async () => {
    const world = await seedWorld(server, workspace, 'Replicated', '0177')
    const [rest] = doors()
    const eligible = catalog.filter(mayReadReplica)
    assert.ok(eligible.length > 20, `${eligible.length} operations`)
    for (const op of eligible) {
      for (const input of buildExampleInputs(world, op)) {
        await waitForReplica()
        await takeOutcomes()
        const { status, body } = await rest!.call(op.name, input)
        assert.ok(status < 500, `${op.name}: ${JSON.stringify(body)}`)
        const { failed = 0, lost = 0 } = await takeOutcomes()
        assert.deepEqual([failed, lost], [0, 0], op.name)
      }
    }
  })

  it('counts as too old while it lacks the timeline of its primary, or takes changes itself', async () => {
    await waitForReplica()
    await setReplay(true)
    // Only its replay could tell it of the timeline that a new primary notes: it has all other changes.
    await sql`update settings set value = '000000FF' where key = 'timeline'`.execute(server.db)
    await setReplay(false)
    await waitForReplica()
    const { rows } = await sql<{ value: string }>`
      select value from settings where key = 'timeline'`.execute(onStandby.db)
    assert.equal(rows[0]!.value, '00000001')
    const itself = createReplica(server.db, { db: server.db, heavy: server.db })
    assert.equal(await itself.ask(), 'behind')
  })

  it('delays reads no more than a moment when it is gone, and never fails them', async () => {
    await waitForReplica()
    const groups = await countGroups()
    await takeOutcomes()
    isGone = true
    standby.stop()
    const startedAt = performance.now()
    for (let i = 0; i < 20; i++) assert.equal(await countGroups(), groups)
    assert.ok(performance.now() - startedAt < 5000)
    const { used = 0, lost = 0, failed = 0, paused = 0 } = await takeOutcomes()
    assert.equal(used, 0)
    assert.ok(lost + failed > 0 && paused > 0)
  })
})

test('an answer is shared, and never older than the question of who gets it', async () => {
  const asked: ((answer: number) => void)[] = []
  const ask = shareQuestion(() => new Promise<number>((answer) => asked.push(answer)))
  const first = ask()
  const [second, third] = [ask(), ask()]
  assert.equal(asked.length, 1)
  asked[0]!(1)
  assert.equal(await first, 1)
  while (asked.length < 2) await Promise.resolve()
  asked[1]!(2)
  assert.deepEqual(await Promise.all([second, third]), [2, 2])
  const fourth = ask()
  while (asked.length < 3) await Promise.resolve()
  asked[2]!(3)
  assert.equal(await fourth, 3)
})
