import { z } from 'zod'
import type { Provider, ProviderLink } from '../port.ts'
import { fetchAllRows, OptionalText, SuccessResponse } from './responses.ts'
import { joinPath, type ProviderHttp } from './http.ts'

const Link = z
  .object({
    code: z.string().min(1),
    prefilled_message: z.string(),
    deep_link_url: z.string().min(1),
    qr_image_url: OptionalText,
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
const PAGE_SIZE = '25'

type LinkMethods = 'createLink' | 'updateLink' | 'findLink' | 'listLinks' | 'deleteLink'

export const createLinksApi = (http: ProviderHttp): Pick<Provider, LinkMethods> => ({
  createLink: async ({ phoneNumberId }, { message, qrFormat }, signal) =>
    await http.request(
      Link,
      {
        method: 'POST',
        path: joinPath(phoneNumberId, 'message_qrdls'),
        json: { prefilled_message: message, ...(qrFormat === null ? {} : { generate_qr_image: qrFormat }) },
      },
      signal,
    ),

  updateLink: async ({ phoneNumberId }, { code, message }, signal) =>
    await http.request(
      Link,
      {
        method: 'POST',
        path: joinPath(phoneNumberId, 'message_qrdls'),
        json: { code, prefilled_message: message },
      },
      signal,
    ),

  // By the list: the protocol does not document the response to the path of a deleted link.
  findLink: async ({ phoneNumberId }, code, signal) => {
    const rows = await fetchAllRows(
      http,
      Link,
      { method: 'GET', path: joinPath(phoneNumberId, 'message_qrdls'), query: { fields: FIELDS, code } },
      signal,
    )
    return rows.find((link) => link.code === code)
  },

  listLinks: async ({ phoneNumberId }, signal) =>
    await fetchAllRows(
      http,
      Link,
      {
        method: 'GET',
        path: joinPath(phoneNumberId, 'message_qrdls'),
        query: { fields: FIELDS, limit: PAGE_SIZE },
      },
      signal,
    ),

  deleteLink: async ({ phoneNumberId }, code, signal) => {
    await http.request(
      SuccessResponse,
      { method: 'DELETE', path: joinPath(phoneNumberId, 'message_qrdls', code) },
      signal,
    )
  },
})
