import assert from 'node:assert/strict'
import { it } from 'node:test'
import { findOperation } from '../../catalog/index.ts'
import { callAs, doAs } from '../calls.ts'
import { doorsOf, everyDatabase, everyDoor, type Reply } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

const digits = '7391'

/**
 * Contacts with phones everywhere that a phone can be, a manager-only field, and an agent from whom both
 * are hidden.
 */
const hiddenScene = async (server: TestServer, workspace: TestWorkspace) => {
  const run = doAs(server, workspace.owner.key)
  for (const [key, more] of [
    ['mobile', { type: 'phone' }],
    ['margin', { type: 'number', visibility: 'manager_only' }],
    ['remark', { type: 'text' }],
  ] as const) {
    await run('crm_create_custom_field', { key, ...more })
  }
  for (const n of [1, 2])
    await run('crm_upsert_contact', {
      phone: `+1555${digits}10${n}`,
      name: `Ada ${n}`,
      attributes: { mobile: `+1555${digits}20${n}`, margin: n, remark: 'kept' },
      tags: ['VIP'],
    })
  await server.db
    .updateTable('contacts')
    .set({ chatapp_user_id: `1555${digits}101@c.example` })
    .where('workspace_id', '=', workspace.id)
    .where('phone', 'like', '%1')
    .execute()
  return {
    run,
    agent: await workspace.staff({ role: 'agent', hide_phone_numbers: true }),
    plainAgent: await workspace.staff({ role: 'agent' }),
  }
}

const attribute = (key: string, conditions: Record<string, unknown>, quantifier = 'some') => ({
  attributes: { [quantifier]: { attributeName: { eq: key }, ...conditions } },
})
/** Filters that would tell hidden digits, one guess at a time, and where the refusal must point. */
const phoneFilters: [Record<string, unknown>, string][] = [
  [{ phoneNumber: { startsWith: '1' } }, '/phoneNumber'],
  [{ phoneNumber: { isNull: true } }, '/phoneNumber'],
  [{ chatappUserId: { regex: '^15' } }, '/chatappUserId'],
  [attribute('mobile', { stringValue: { contains: digits } }), '/attributes/some/attributeName'],
  [attribute('mobile', {}, 'none'), '/attributes/none/attributeName'],
  [{ or: [{ starred: { eq: true } }, { not: { phoneNumber: { ne: '1' } } }] }, '/or/1/not/phoneNumber'],
]

const assertRefused = (reply: Reply, reason: string, pointer: string, what: string): void => {
  assert.deepEqual(
    [reply.status, reply.body.code, reply.body.reason],
    [403, 'forbidden', reason],
    `${what}: ${reply.text}`,
  )
  assert.deepEqual(
    reply.body.errors.map(
      (error: { pointer?: string; parameter?: string }) => error.pointer ?? error.parameter,
    ),
    [pointer],
    what,
  )
  assert.ok(reply.body.errors[0].fix.length > 5, what)
  // The port of the server and the request's id are digits of their own.
  const { type: _type, request_id: _id, ...said } = reply.body
  assert.ok(!JSON.stringify(said).includes(digits), what)
}

everyDatabase('Phones hidden from an agent', (server) => {
  it('cannot be asked for by any filter, in no operation', async () => {
    const workspace = await makeWorkspace(server())
    const { agent } = await hiddenScene(server(), workspace)
    const call = callAs(server(), agent.key)
    for (const [filter, place] of phoneFilters) {
      for (const [op, more] of [
        ['crm_search_contacts', {}],
        ['crm_count_contacts', {}],
        ['crm_check_filter', {}],
        ['crm_create_saved_filter', { name: 'Guess' }],
        ['crm_create_saved_filter', { name: 'Guess', dry_run: true, count: true }],
      ] as const)
        assertRefused(
          await call(op, { filter, ...more }),
          'phone_hidden',
          `#/filter${place}`,
          `${op} ${JSON.stringify(filter)}`,
        )
    }
    assert.deepEqual((await call('crm_list_saved_filters')).body.data, [])
  })

  it('cannot be asked for by the filter that a colleague saved', async () => {
    const workspace = await makeWorkspace(server())
    const { run, agent } = await hiddenScene(server(), workspace)
    const call = callAs(server(), agent.key)
    const own = (
      await doAs(server(), agent.key)('crm_create_saved_filter', {
        name: 'Own',
        filter: { name: { contains: 'ada' } },
      })
    ).saved_filter.id
    for (const [filter] of phoneFilters) {
      const {
        saved_filter: { id },
      } = await run('crm_create_saved_filter', { name: 'Numbers', filter })
      const {
        saved_filter: { id: outer },
      } = await run('crm_create_saved_filter', { name: 'Of numbers', filter: { savedFilter: { eq: id } } })
      for (const saved of [id, outer]) {
        for (const op of ['crm_search_contacts', 'crm_count_contacts'])
          assertRefused(await call(op, { saved_filter_id: saved }), 'phone_hidden', '#/saved_filter_id', op)
        for (const op of ['crm_search_contacts', 'crm_count_contacts', 'crm_check_filter']) {
          assertRefused(
            await call(op, { filter: { not: { savedFilter: { eq: saved } } } }),
            'phone_hidden',
            '#/filter/not/savedFilter/eq',
            op,
          )
        }
        assertRefused(
          await call('crm_update_saved_filter', {
            saved_filter_id: own,
            filter: { savedFilter: { eq: saved } },
            dry_run: true,
            count: true,
          }),
          'phone_hidden',
          '#/filter/savedFilter/eq',
          'update',
        )
      }
    }
    // A count of what is stored is asked for by its owner alone, who may meanwhile have lost the right.
    const numbers = await workspace.staff({ role: 'agent' })
    const {
      saved_filter: { id },
    } = await doAs(server(), numbers.key)('crm_create_saved_filter', {
      name: 'Mine',
      filter: phoneFilters[0]![0],
    })
    await server()
      .db.updateTable('staff')
      .set({ hide_phone_numbers: true })
      .where('workspace_id', '=', workspace.id)
      .where('id', '=', numbers.staffId)
      .execute()
    const counted = await callAs(server(), (await workspace.key(numbers.staffId)).key)(
      'crm_update_saved_filter',
      { saved_filter_id: id, dry_run: true, count: true },
    )
    assert.deepEqual(
      [counted.status, counted.body.count, counted.body.count_error?.code],
      [200, null, 'forbidden'],
      counted.text,
    )
  })

  it('cannot be told from the order, nor from a query beside a filter', async () => {
    const workspace = await makeWorkspace(server())
    const { agent } = await hiddenScene(server(), workspace)
    const call = callAs(server(), agent.key)
    const filter = { name: { contains: 'ada' } }
    for (const direction of ['asc', 'desc'])
      assertRefused(
        await call('crm_search_contacts', { filter, sort: { field: 'phoneNumber', direction } }),
        'phone_hidden',
        '#/sort/field',
        'sort',
      )
    for (const query of ['7', '٧', 'x１', '²'])
      assertRefused(await call('crm_search_contacts', { filter, query }), 'phone_hidden', '#/query', query)
    const seen = await call('crm_search_contacts', { filter, query: 'a', sort: { field: 'name' } })
    assert.deepEqual([seen.status, seen.body.total, seen.text.includes(digits)], [200, 2, false])
  })

  it('may be asked for by those who see them', async () => {
    const workspace = await makeWorkspace(server())
    const { run, plainAgent } = await hiddenScene(server(), workspace)
    const manager = await workspace.staff({ role: 'manager', hide_phone_numbers: true })
    for (const key of [plainAgent.key, manager.key]) {
      for (const [filter] of phoneFilters)
        assert.equal(
          (await callAs(server(), key)('crm_count_contacts', { filter })).status,
          200,
          JSON.stringify(filter),
        )
    }
    assert.equal((await run('crm_count_contacts', { filter: phoneFilters[3]![0] })).count, 2)
  })
})

everyDatabase('Manager-only fields', (server) => {
  it('are to an agent as if they were not there', async () => {
    const workspace = await makeWorkspace(server())
    const { run, plainAgent } = await hiddenScene(server(), workspace)
    const call = callAs(server(), plainAgent.key)
    for (const op of ['crm_search_contacts', 'crm_count_contacts', 'crm_check_filter']) {
      const [secret, unknown] = await Promise.all(
        ['margin', 'nothing'].map((key) => call(op, { filter: attribute(key, { numberValue: { gt: 1 } }) })),
      )
      assert.deepEqual(
        [secret!.status, secret!.body.errors[0].code, secret!.body.errors[0].pointer],
        [400, 'unknown_attribute', '#/filter/attributes/some/attributeName/eq'],
      )
      assert.deepEqual(secret!.body.errors[0].allowed, unknown!.body.errors[0].allowed)
      assert.ok(!secret!.body.errors[0].allowed.includes('margin'))
    }
    assert.equal(
      (await run('crm_count_contacts', { filter: attribute('margin', { numberValue: { gt: 1 } }) })).count,
      1,
    )
  })

  it('cannot be asked for through a saved filter', async () => {
    const workspace = await makeWorkspace(server())
    const { run, plainAgent } = await hiddenScene(server(), workspace)
    const {
      saved_filter: { id },
    } = await run('crm_create_saved_filter', {
      name: 'Rich',
      filter: attribute('margin', { numberValue: { gt: 1 } }),
    })
    const call = callAs(server(), plainAgent.key)
    for (const op of ['crm_search_contacts', 'crm_count_contacts'])
      assertRefused(await call(op, { saved_filter_id: id }), 'field_hidden', '#/saved_filter_id', op)
    assertRefused(
      await call('crm_check_filter', { filter: { savedFilter: { eq: id } } }),
      'field_hidden',
      '#/filter/savedFilter/eq',
      'check',
    )
  })

  it('hide email addresses where the email field is one of them', async () => {
    const workspace = await makeWorkspace(server())
    const { run, plainAgent } = await hiddenScene(server(), workspace)
    const email = (await run('crm_list_custom_fields', { search: 'email' })).data[0]
    const call = callAs(server(), plainAgent.key)
    assert.equal((await call('crm_count_contacts', { filter: { email: { contains: 'a' } } })).status, 200)
    await run('crm_update_custom_field', { custom_field_id: email.id, visibility: 'manager_only' })
    assertRefused(
      await call('crm_count_contacts', { filter: { email: { contains: 'a' } } }),
      'field_hidden',
      '#/filter/email',
      'email',
    )
    assert.equal(
      (await call('crm_count_contacts', { filter: attribute('email', { stringValue: { contains: 'a' } }) }))
        .status,
      400,
    )
  })
})

everyDatabase('Another workspace', (server) => {
  it('lends no saved filter, tag or field to a filter', async () => {
    const [here, there] = [await makeWorkspace(server()), await makeWorkspace(server())]
    const { run } = await hiddenScene(server(), there)
    const {
      saved_filter: { id },
    } = await run('crm_create_saved_filter', { name: 'Theirs', filter: { name: { isNull: false } } })
    await doAs(server(), here.owner.key)('crm_upsert_contact', {
      phone: '+15550100001',
      name: 'Here',
      tags: ['VIP'],
    })
    const call = callAs(server(), here.owner.key)
    for (const op of ['crm_search_contacts', 'crm_count_contacts']) {
      const reply = await call(op, { saved_filter_id: id })
      assert.deepEqual([reply.status, reply.body.reason], [404, 'saved_filter_not_found'])
    }
    const named = await call('crm_check_filter', { filter: { or: [{ savedFilter: { eq: id } }, {}] } })
    assert.deepEqual(
      [named.status, named.body.reason, named.body.errors[0].pointer],
      [404, 'saved_filter_not_found', '#/filter/or/0/savedFilter/eq'],
    )
    assert.equal(
      (await call('crm_count_contacts', { filter: attribute('remark', {}) })).body.errors[0].code,
      'unknown_attribute',
    )
    const tag = (await run('crm_list_tags')).data[0].id
    assert.equal(
      (await call('crm_count_contacts', { filter: { tags: { some: { id: { eq: tag } } } } })).body.count,
      0,
    )
    assert.equal(
      (await call('crm_count_contacts', { filter: { tags: { some: { name: { eq: 'VIP' } } } } })).body.count,
      1,
    )
  })
})

everyDoor(
  'A server on which filters are switched off',
  (test) => {
    test('refuses them, and serves the rest', async ({ call, workspace, server }) => {
      await doAs(server, workspace.owner.key)('crm_upsert_contact', { phone: '+15550100001', name: 'Ada' })
      const filter = { name: { eq: 'Ada' } }
      for (const [op, input] of [
        ['crm_search_contacts', { filter }],
        ['crm_search_contacts', { saved_filter_id: '1' }],
        ['crm_count_contacts', { filter }],
        ['crm_check_filter', { filter }],
        ['crm_create_saved_filter', { name: 'Ada', filter, dry_run: true }],
      ] as const) {
        const { status, body } = await call(op, input)
        assert.deepEqual(
          [status, body.code, body.reason],
          [503, 'service_unconfigured', 'advanced_filter_disabled'],
          op,
        )
        assert.ok(findOperation(op)!.errors.includes('service_unconfigured'))
      }
      assert.equal((await call('crm_search_contacts', { query: 'ada' })).body.total, 1)
      assert.equal((await call('crm_count_contacts')).body.count, 1)
    })
  },
  { advancedFilters: 'off' },
)

everyDatabase(
  'A filter that would take for ever',
  (server) => {
    it('is cut short, and says how to mend it', async () => {
      const workspace = await makeWorkspace(server())
      const { run } = await hiddenScene(server(), workspace)
      // Each way of sharing out the letters among the groups is tried; there are thousands of millions.
      const filter = attribute('remark', { stringValue: { regex: '^(x*)(x*)(x*)(x*)y\\1\\2\\3\\4y$' } })
      await run('crm_upsert_contact', {
        phone: '+15550100009',
        name: 'Long',
        attributes: { remark: `${'x'.repeat(4000)}y${'x'.repeat(3999)}y` },
      })
      const [rest, ops] = doorsOf(server().url, workspace.owner.key)
      for (const { status, body } of [
        await rest!.call('crm_search_contacts', { filter }),
        await ops!.call('crm_count_contacts', { filter }),
      ]) {
        assert.deepEqual([status, body.code, body.reason], [504, 'timeout', 'query_timeout'], body.detail)
      }
      const rehearsed = await run('crm_create_saved_filter', {
        name: 'Slow',
        filter,
        dry_run: true,
        count: true,
      })
      assert.deepEqual([rehearsed.count, rehearsed.count_error.code], [null, 'timeout'])
      assert.equal((await run('crm_count_contacts', { filter: { name: { eq: 'Long' } } })).count, 1)
    })
  },
  { statementTimeout: 1000 },
)
