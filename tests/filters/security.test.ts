import assert from 'node:assert/strict'
import { it } from 'node:test'
import { findOperation } from '../../catalog/index.ts'
import { callAs, doAs } from '../calls.ts'
import { doorsOf, everyDatabase, everyDoor, type Reply } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

const SECRET_DIGITS = '7391'

/**
 * Creates contacts with phone numbers in every place that can hold one, a manager-only field, and an agent
 * from whom both are hidden.
 */
const createHiddenData = async (server: TestServer, workspace: TestWorkspace) => {
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
      phone: `+1555${SECRET_DIGITS}10${n}`,
      name: `Ada ${n}`,
      attributes: { mobile: `+1555${SECRET_DIGITS}20${n}`, margin: n, remark: 'kept' },
      tags: ['VIP'],
    })
  await server.db
    .updateTable('contacts')
    .set({ chatapp_user_id: `1555${SECRET_DIGITS}101@c.example` })
    .where('workspace_id', '=', workspace.id)
    .where('phone', 'like', '%1')
    .execute()
  return {
    run,
    agent: await workspace.staff({ role: 'agent', hide_phone_numbers: true }),
    unrestrictedAgent: await workspace.staff({ role: 'agent' }),
  }
}

const onAttribute = (key: string, conditions: Record<string, unknown>, quantifier = 'some') => ({
  attributes: { [quantifier]: { attributeName: { eq: key }, ...conditions } },
})
/** Filters that would reveal hidden digits, one guess at a time, and where the refusal points. */
const phoneFilters: [Record<string, unknown>, string][] = [
  [{ phoneNumber: { startsWith: '1' } }, '/phoneNumber'],
  [{ phoneNumber: { isNull: true } }, '/phoneNumber'],
  [{ chatappUserId: { regex: '^15' } }, '/chatappUserId'],
  [onAttribute('mobile', { stringValue: { contains: SECRET_DIGITS } }), '/attributes/some/attributeName'],
  [onAttribute('mobile', {}, 'none'), '/attributes/none/attributeName'],
  [{ or: [{ starred: { eq: true } }, { not: { phoneNumber: { ne: '1' } } }] }, '/or/1/not/phoneNumber'],
  [{ name: { regex: '^\\D+$' } }, '/name'],
  [{ country: { eq: 'US' } }, '/country'],
]

const assertHidden = (reply: Reply, reason: string, pointer: string, message: string): void => {
  assert.deepEqual(
    [reply.status, reply.body.code, reply.body.reason],
    [403, 'forbidden', reason],
    `${message}: ${reply.text}`,
  )
  assert.deepEqual(
    reply.body.errors.map(
      (error: { pointer?: string; parameter?: string }) => error.pointer ?? error.parameter,
    ),
    [pointer],
    message,
  )
  assert.ok(reply.body.errors[0].fix.length > 5, message)
  // The URL with the server's port, and the request id, may contain the same digits by chance.
  const { type: _type, request_id: _id, ...shown } = reply.body
  assert.ok(!JSON.stringify(shown).includes(SECRET_DIGITS), message)
}

everyDatabase('Filters: hidden phone numbers', (server) => {
  it('every filter on phone numbers is refused, in every operation', async () => {
    const workspace = await makeWorkspace(server())
    const { agent } = await createHiddenData(server(), workspace)
    const call = callAs(server(), agent.key)
    for (const [filter, place] of phoneFilters) {
      for (const [op, more] of [
        ['crm_search_contacts', {}],
        ['crm_count_contacts', {}],
        ['crm_check_filter', {}],
        ['crm_create_saved_filter', { name: 'Guess' }],
        ['crm_create_saved_filter', { name: 'Guess', dry_run: true, count: true }],
      ] as const)
        assertHidden(
          await call(op, { filter, ...more }),
          'phone_hidden',
          `#/filter${place}`,
          `${op} ${JSON.stringify(filter)}`,
        )
    }
    assert.deepEqual((await call('crm_list_saved_filters')).body.data, [])
  })

  it('a saved filter of a colleague cannot be used to compare phone numbers', async () => {
    const workspace = await makeWorkspace(server())
    const { run, agent } = await createHiddenData(server(), workspace)
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
          assertHidden(await call(op, { saved_filter_id: saved }), 'phone_hidden', '#/saved_filter_id', op)
        for (const op of ['crm_search_contacts', 'crm_count_contacts', 'crm_check_filter']) {
          assertHidden(
            await call(op, { filter: { not: { savedFilter: { eq: saved } } } }),
            'phone_hidden',
            '#/filter/not/savedFilter/eq',
            op,
          )
        }
        assertHidden(
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
    // Only the owner can count a stored filter, and may meanwhile have lost the right to see phone numbers.
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
    const update = await callAs(server(), (await workspace.key(numbers.staffId)).key)(
      'crm_update_saved_filter',
      { saved_filter_id: id, dry_run: true, count: true },
    )
    assert.deepEqual(
      [update.status, update.body.count, update.body.count_error?.code],
      [200, null, 'forbidden'],
      update.text,
    )
  })

  it('sorting by phone number and queries for digits are refused beside a filter', async () => {
    const workspace = await makeWorkspace(server())
    const { agent } = await createHiddenData(server(), workspace)
    const call = callAs(server(), agent.key)
    const filter = { name: { contains: 'ada' } }
    for (const direction of ['asc', 'desc'])
      assertHidden(
        await call('crm_search_contacts', { filter, sort: { field: 'phoneNumber', direction } }),
        'phone_hidden',
        '#/sort/field',
        'sort',
      )
    for (const query of ['7', '٧', 'x１', '²'])
      assertHidden(await call('crm_search_contacts', { filter, query }), 'phone_hidden', '#/query', query)
    const allowed = await call('crm_search_contacts', { filter, query: 'a', sort: { field: 'name' } })
    assert.deepEqual(
      [allowed.status, allowed.body.total, allowed.text.includes(SECRET_DIGITS)],
      [200, 2, false],
    )
  })

  it('staff who may see phone numbers may filter on them', async () => {
    const workspace = await makeWorkspace(server())
    const { run, unrestrictedAgent } = await createHiddenData(server(), workspace)
    const manager = await workspace.staff({ role: 'manager', hide_phone_numbers: true })
    for (const key of [unrestrictedAgent.key, manager.key]) {
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

everyDatabase('Filters: manager-only fields', (server) => {
  it('an agent gets the same error as for a field that does not exist', async () => {
    const workspace = await makeWorkspace(server())
    const { run, unrestrictedAgent } = await createHiddenData(server(), workspace)
    const call = callAs(server(), unrestrictedAgent.key)
    for (const op of ['crm_search_contacts', 'crm_count_contacts', 'crm_check_filter']) {
      const [hidden, unknown] = await Promise.all(
        ['margin', 'nothing'].map((key) =>
          call(op, { filter: onAttribute(key, { numberValue: { gt: 1 } }) }),
        ),
      )
      assert.deepEqual(
        [hidden!.status, hidden!.body.errors[0].code, hidden!.body.errors[0].pointer],
        [400, 'unknown_attribute', '#/filter/attributes/some/attributeName/eq'],
      )
      assert.deepEqual(hidden!.body.errors[0].allowed, unknown!.body.errors[0].allowed)
      assert.ok(!hidden!.body.errors[0].allowed.includes('margin'))
    }
    assert.equal(
      (await run('crm_count_contacts', { filter: onAttribute('margin', { numberValue: { gt: 1 } }) })).count,
      1,
    )
  })

  it('a saved filter cannot be used to compare them', async () => {
    const workspace = await makeWorkspace(server())
    const { run, unrestrictedAgent } = await createHiddenData(server(), workspace)
    const {
      saved_filter: { id },
    } = await run('crm_create_saved_filter', {
      name: 'Rich',
      filter: onAttribute('margin', { numberValue: { gt: 1 } }),
    })
    const call = callAs(server(), unrestrictedAgent.key)
    for (const op of ['crm_search_contacts', 'crm_count_contacts'])
      assertHidden(await call(op, { saved_filter_id: id }), 'field_hidden', '#/saved_filter_id', op)
    assertHidden(
      await call('crm_check_filter', { filter: { savedFilter: { eq: id } } }),
      'field_hidden',
      '#/filter/savedFilter/eq',
      'check',
    )
  })

  it('a filter on email is refused when the email field is manager-only', async () => {
    const workspace = await makeWorkspace(server())
    const { run, unrestrictedAgent } = await createHiddenData(server(), workspace)
    const email = (await run('crm_list_custom_fields', { search: 'email' })).data[0]
    const call = callAs(server(), unrestrictedAgent.key)
    assert.equal((await call('crm_count_contacts', { filter: { email: { contains: 'a' } } })).status, 200)
    await run('crm_update_custom_field', { custom_field_id: email.id, visibility: 'manager_only' })
    assertHidden(
      await call('crm_count_contacts', { filter: { email: { contains: 'a' } } }),
      'field_hidden',
      '#/filter/email',
      'email',
    )
    assert.equal(
      (await call('crm_count_contacts', { filter: onAttribute('email', { stringValue: { contains: 'a' } }) }))
        .status,
      400,
    )
  })
})

everyDatabase('Filters: other workspaces', (server) => {
  it('tags and fields of another workspace cannot be used', async () => {
    const [own, other] = [await makeWorkspace(server()), await makeWorkspace(server())]
    const { run } = await createHiddenData(server(), other)
    await doAs(server(), own.owner.key)('crm_upsert_contact', {
      phone: '+15550100001',
      name: 'Own',
      tags: ['VIP'],
    })
    const call = callAs(server(), own.owner.key)
    assert.equal(
      (await call('crm_count_contacts', { filter: onAttribute('remark', {}) })).body.errors[0].code,
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
  'Filters: disabled on the server',
  (test) => {
    test('filters are refused, other searches and counts work', async ({ call, workspace, server }) => {
      await doAs(server, workspace.owner.key)('crm_upsert_contact', { phone: '+15550100001', name: 'Ada' })
      const filter = { name: { eq: 'Ada' } }
      for (const [op, input] of [
        ['crm_search_contacts', { filter }],
        ['crm_search_contacts', { saved_filter_id: '1' }],
        ['crm_count_contacts', { filter }],
        ['crm_count_contacts', { saved_filter_id: '1' }],
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
  'Filters: slow regular expressions',
  (server) => {
    it('the statement is cancelled and the response is query_timeout', async () => {
      const workspace = await makeWorkspace(server())
      const { run } = await createHiddenData(server(), workspace)
      // Twice the same letters are never an odd number, so every split between the groups is tried: millions.
      const filter = onAttribute('remark', { stringValue: { regex: '^(x*)(x*)(x*)(x*)y\\1\\1y$' } })
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
      const dryRun = await run('crm_create_saved_filter', {
        name: 'Slow',
        filter,
        dry_run: true,
        count: true,
      })
      assert.deepEqual([dryRun.count, dryRun.count_error.code], [null, 'timeout'])
      assert.equal((await run('crm_count_contacts', { filter: { name: { eq: 'Long' } } })).count, 1)
    })
  },
  { statementTimeout: 1000 },
)
