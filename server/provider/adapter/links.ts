import { z } from 'zod'
import type { Provider, ProviderLink } from '../port.ts'
import { everyPage, Maybe, Success } from './answers.ts'
import { at, type Http } from './http.ts'

const Link = z
  .object({
    code: z.string().min(1),
    prefilled_message: z.string(),
    deep_link_url: z.string().min(1),
    qr_image_url: Maybe,
  })
  .transform(
    ({ code, prefilled_message: message, deep_link_url: url, qr_image_url: qrImageUrl }): ProviderLink => ({
      code,
      message,
      url,
      qrImageUrl,
    }),
  )

const FIELDS = 'code,prefilled_message,deep_link_url,qr_image_url.format(SVG)'
const PAGE = '25'

type Topic = 'createLink' | 'updateLink' | 'findLink' | 'listLinks' | 'deleteLink'

export const links = (http: Http): Pick<Provider, Topic> => ({
  createLink: async ({ phoneNumberId }, { message, qrFormat }, signal) =>
    await http.ask(
      Link,
      {
        method: 'POST',
        path: at(phoneNumberId, 'message_qrdls'),
        json: { prefilled_message: message, ...(qrFormat === null ? {} : { generate_qr_image: qrFormat }) },
      },
      signal,
    ),

  updateLink: async ({ phoneNumberId }, { code, message }, signal) =>
    await http.ask(
      Link,
      {
        method: 'POST',
        path: at(phoneNumberId, 'message_qrdls'),
        json: { code, prefilled_message: message },
      },
      signal,
    ),

  // By the list: what is answered to the path of a link that is gone is not said anywhere.
  findLink: async ({ phoneNumberId }, code, signal) => {
    const rows = await everyPage(
      http,
      Link,
      { method: 'GET', path: at(phoneNumberId, 'message_qrdls'), query: { fields: FIELDS, code } },
      signal,
    )
    return rows.find((link) => link.code === code)
  },

  listLinks: async ({ phoneNumberId }, signal) =>
    await everyPage(
      http,
      Link,
      { method: 'GET', path: at(phoneNumberId, 'message_qrdls'), query: { fields: FIELDS, limit: PAGE } },
      signal,
    ),

  deleteLink: async ({ phoneNumberId }, code, signal) => {
    await http.ask(Success, { method: 'DELETE', path: at(phoneNumberId, 'message_qrdls', code) }, signal)
  },
})
