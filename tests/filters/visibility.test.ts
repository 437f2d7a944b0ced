import assert from 'node:assert/strict'
import { everyDoor } from '../doors.ts'
import { assertRefused, type Json, NAME_IS_X } from './grammar-fixtures.ts'

everyDoor('Filters: hidden data', (test) => {
  test('a filter on phone numbers is refused to staff from whom they are hidden', async ({
    workspace,
    call,
    as,
  }) => {
    await call('crm_create_custom_field', { key: 'mobile', type: 'phone' })
    const agent = as((await workspace.staff({ role: 'agent' })).key)
    const restrictedAgent = as((await workspace.staff({ role: 'agent', hide_phone_numbers: true })).key)
    const filters: [Json, string][] = [
      [{ phoneNumber: { startsWith: '1555' } }, '/phoneNumber'],
      [{ country: { eq: 'US' } }, '/country'],
      [{ not: { chatappUserId: { isNull: true } } }, '/not/chatappUserId'],
      [
        {
          or: [
            NAME_IS_X,
            { attributes: { none: { attributeName: { eq: 'mobile' }, stringValue: { contains: '5' } } } },
          ],
        },
        '/or/1/attributes/none/attributeName',
      ],
    ]
    for (const [filter, pointer] of filters) {
      assertRefused(await restrictedAgent('crm_check_filter', { filter }), {
        status: 403,
        reason: 'phone_hidden',
        pointer: `#/filter${pointer}`,
      })
      assertRefused(await restrictedAgent('crm_search_contacts', { filter }), {
        status: 403,
        reason: 'phone_hidden',
        pointer: `#/filter${pointer}`,
      })
      assertRefused(await restrictedAgent('crm_count_contacts', { filter }), {
        status: 403,
        reason: 'phone_hidden',
        pointer: `#/filter${pointer}`,
      })
      assert.equal((await agent('crm_check_filter', { filter })).status, 200)
      const { body } = await call('crm_create_saved_filter', { name: 'Phones', filter })
      assertRefused(
        await restrictedAgent('crm_check_filter', {
          filter: { and: [{ savedFilter: { eq: body.saved_filter.id } }] },
        }),
        { status: 403, reason: 'phone_hidden', pointer: '#/filter/and/0/savedFilter/eq' },
      )
      assertRefused(await restrictedAgent('crm_search_contacts', { saved_filter_id: body.saved_filter.id }), {
        status: 403,
        reason: 'phone_hidden',
        pointer: '#/saved_filter_id',
      })
    }
  })

  test('a filter on a manager-only field is refused to agents', async ({ workspace, call, as }) => {
    await call('crm_create_custom_field', { key: 'salary', type: 'int', visibility: 'manager_only' })
    const agent = as((await workspace.staff({ role: 'agent' })).key)
    const { body } = await call('crm_create_saved_filter', {
      name: 'Rich',
      filter: { attributes: { some: { attributeName: { eq: 'salary' }, numberValue: { gt: 9 } } } },
    })
    assertRefused(
      await agent('crm_check_filter', { filter: { savedFilter: { eq: body.saved_filter.id } } }),
      {
        status: 403,
        reason: 'field_hidden',
        pointer: '#/filter/savedFilter/eq',
      },
    )
    const filter = { email: { endsWith: '@example.com' } }
    assert.equal((await agent('crm_check_filter', { filter })).status, 200)
    const email = (await call('crm_list_custom_fields')).body.data.find(
      (f: { key: string }) => f.key === 'email',
    )
    await call('crm_update_custom_field', { custom_field_id: email.id, visibility: 'manager_only' })
    assertRefused(await agent('crm_check_filter', { filter }), {
      status: 403,
      reason: 'field_hidden',
      pointer: '#/filter/email',
    })
    assert.equal((await call('crm_check_filter', { filter })).status, 200)
  })
})
