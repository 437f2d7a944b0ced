import { z } from 'zod'
import type { Provider, ProviderNumber } from '../port.ts'
import { fetchAllRows, OptionalText, ProviderId, SuccessResponse, withFieldFallback } from './responses.ts'
import { joinPath, type ProviderHttp } from './http.ts'

const Row = z
  .object({
    id: ProviderId,
    display_phone_number: z.string(),
    verified_name: OptionalText,
    status: OptionalText,
    quality_rating: OptionalText,
    whatsapp_business_manager_messaging_limit: OptionalText,
    messaging_limit_tier: OptionalText,
  })
  .transform(
    ({
      display_phone_number: displayPhoneNumber,
      verified_name: verifiedName,
      status,
      quality_rating: qualityRating,
      whatsapp_business_manager_messaging_limit: portfolioLimit,
      messaging_limit_tier: numberLimit,
      id,
    }): ProviderNumber => ({
      id,
      displayPhoneNumber,
      verifiedName,
      status: status ?? 'UNKNOWN',
      qualityRating,
      messagingLimit: portfolioLimit ?? numberLimit,
    }),
  )

const BASIC_FIELDS = 'id,display_phone_number,verified_name,quality_rating'
const STATUS_FIELDS = 'id,display_phone_number,verified_name,status,quality_rating'
/** The limit has moved from the number to the whole business; the older field may be gone. */
const FIELDS = `${STATUS_FIELDS},whatsapp_business_manager_messaging_limit,messaging_limit_tier`
const PAGE_SIZE = '50'

/** Requests with as many of the fields as the provider knows. */
const withNumberFields = <T>(list: (fields: string) => Promise<T>): Promise<T> =>
  withFieldFallback(FIELDS, STATUS_FIELDS, (fields) =>
    fields === FIELDS ? list(fields) : withFieldFallback(STATUS_FIELDS, BASIC_FIELDS, list),
  )

export const createAccountsApi = (
  http: ProviderHttp,
): Pick<Provider, 'phoneNumbers' | 'phoneNumber' | 'subscribe'> => ({
  phoneNumbers: async (accountId, signal) =>
    await withNumberFields((fields) =>
      fetchAllRows(
        http,
        Row,
        { method: 'GET', path: joinPath(accountId, 'phone_numbers'), query: { fields, limit: PAGE_SIZE } },
        signal,
      ),
    ),

  phoneNumber: async ({ phoneNumberId }, signal) =>
    await withNumberFields((fields) =>
      http.request(Row, { method: 'GET', path: joinPath(phoneNumberId), query: { fields } }, signal),
    ),

  subscribe: async (accountId, callback, signal) => {
    const json = callback ? { override_callback_uri: callback.url, verify_token: callback.verifyToken } : {}
    await http.request(
      SuccessResponse,
      { method: 'POST', path: joinPath(accountId, 'subscribed_apps'), json },
      signal,
    )
  },
})
