import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { eventTypes } from '../../catalog/events.ts'
import { recipes } from '../../cli/trigger/recipes.ts'
import { doAs } from '../calls.ts'
import { everyDatabase, runCli } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

const offline = { XDG_CONFIG_HOME: '/nonexistent', WCRM_URL: 'http://127.0.0.1:9', WCRM_API_KEY: 'wc_test_x' }

const AT_ONCE = 4

everyDatabase('wcrm trigger', (server, database) => {
  /** Does the jobs of a server, which tests run by hand, until the work is done. */
  const withJobs = async <T>(work: Promise<T>): Promise<T> => {
    let isDone = false
    void work.finally(() => (isDone = true)).catch(() => {})
    while (!isDone) await server().settle()
    return await work
  }

  const setUp = async () => {
    const workspace = await makeWorkspace(server())
    const env = { ...offline, WCRM_URL: server().url, WCRM_API_KEY: workspace.owner.key }
    const trigger = async (...words: string[]) => {
      const { exit, stdout, stderr } = await runCli(['trigger', ...words, '--json'], env)
      assert.equal(exit, 0, `${words.join(' ')}: ${stderr}`)
      return JSON.parse(stdout)
    }
    return { run: doAs(server(), workspace.owner.key), trigger, env }
  }

  it('every event that the sandbox can make happens, and is in the event log', async () => {
    const { run, trigger } = await setUp()
    const events = Object.keys(recipes).filter((_, i) => database === 'embedded' || i % 5 === 0)
    const made = []
    // More at once would be more reads of the log than one key may have.
    for (let i = 0; i < events.length; i += AT_ONCE)
      made.push(...(await withJobs(Promise.all(events.slice(i, i + AT_ONCE).map((event) => trigger(event))))))
    for (const { event, made: by, event_id: id } of made) {
      const { data } = await run('events_list', { types: [event] })
      assert.equal(by, 'sandbox', event)
      assert.ok(
        (data as { id: string }[]).some((found) => found.id === id),
        event,
      )
    }
  })

  it('others are sent to an endpoint as a test, and it says so; so are all with --test', async () => {
    const { run, trigger, env } = await setUp()
    const without = await runCli(['trigger', 'group.created'], env)
    assert.deepEqual([without.exit, without.stdout], [3, ''])
    assert.match(without.stderr, /no active one[^]*wcrm webhooks create/)
    const ids: string[] = []
    for (const n of [1, 2])
      ids.push((await run('webhooks_create_endpoint', { url: `https://127.0.0.1:9/${n}` })).endpoint.id)
    await run('webhooks_set_subscriptions', { endpoint_id: ids[0], event_types: ['group.created/1'] })
    const sent = await trigger('group.created', '--wait', '0')
    assert.deepEqual([sent.made, sent.event, sent.endpoint_id], ['test', 'group.created/1', ids[0]])
    const asTest = await trigger('message.received', '--endpoint', ids[1]!, '--wait', '0')
    assert.deepEqual([asTest.made, asTest.endpoint_id], ['test', ids[1]])
    assert.deepEqual((await run('events_list', {})).data, [])
  })
})

describe('wcrm trigger without a sandbox', () => {
  it('sends the test alone', async () => {
    const calls: string[] = []
    const fake = createServer((request, response) => {
      calls.push(request.url!)
      const [status, body] = request.url!.startsWith('/sandbox')
        ? [404, { code: 'not_found', reason: 'no_sandbox', detail: 'No sandbox.', status: 404 }]
        : [
            200,
            {
              event_id: 'evt_1',
              delivery_id: 'dlv_1',
              outcome: null,
              data: [{ id: 'ep_1', subscriptions: { event_types: [] } }],
            },
          ]
      response.writeHead(Number(status), { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    })
    await new Promise<void>((ready) => fake.listen(0, '127.0.0.1', ready))
    const env = { ...offline, WCRM_URL: `http://127.0.0.1:${(fake.address() as AddressInfo).port}` }
    const { exit, stdout, stderr } = await runCli(['trigger', 'message.received'], env)
    fake.closeAllConnections()
    fake.close()
    assert.equal(exit, 0, stderr)
    assert.match(stdout, /^made: test$/m)
    assert.deepEqual(calls, [
      '/sandbox/clock',
      '/v1/ops/webhooks_list_endpoints',
      '/v1/ops/webhooks_send_test',
    ])
  })

  it('lists the events, and names near ones, without a server', async () => {
    const { exit, stdout } = await runCli(['trigger', '--json'], offline)
    const { data } = JSON.parse(stdout) as { data: { event: string; how: string }[] }
    assert.equal(exit, 0)
    assert.deepEqual(
      data.map(({ event }) => event),
      Object.keys(eventTypes).toSorted(),
    )
    assert.deepEqual(
      data.flatMap(({ event, how }) => (how.startsWith('a test event') ? [] : [event])).toSorted(),
      Object.keys(recipes).toSorted(),
    )
    assert.match((await runCli(['trigger'], offline)).stdout, /^message\.received\/1\ta customer writes\t/m)
    for (const [name, near] of [
      ['mesage.recieved', /Did you mean: message\.received/],
      ['reaction', /message\.reaction_changed/],
      ['zzz', /List them: wcrm trigger/],
    ] as const) {
      const wrong = await runCli(['trigger', name], offline)
      assert.deepEqual([wrong.exit, wrong.stdout], [2, ''])
      assert.match(wrong.stderr, near)
    }
    const wait = await runCli(['trigger', 'group.created', '--wait', '1h'], offline)
    assert.deepEqual([wait.exit, /0 to 10/.test(wait.stderr)], [2, true])
  })
})
