// SPDX-License-Identifier: Apache-2.0
// One run in ns-3 (3.37), as the backend ns3 describes it: point-to-point links, bulk flows, no queue discipline.
//
// Standard input holds one item a line, nodes, links and flows numbered from 0:
//   mtu BYTES
//   node COUNT
//   link NODE NODE DELAY_US RATE_A_BPS LIMIT_A RATE_B_BPS LIMIT_B     rates and queue limits of both ends
//   flow SENDER RECEIVER MODEL START_US DURATION_US STREAMS SEND_BUFFER RECEIVE_BUFFER
//   sample SOCKETS_US QUEUES_US
//   end SEED END_US
// Standard output: "socket T_US FLOW STREAM CWND_BYTES SSTHRESH_BYTES IN_FLIGHT_BYTES RTT_US ACKED_BYTES",
// "queue T_US LINK END PACKETS BYTES DROPS SENT SENT_BYTES" and, at the end, "received FLOW BYTES LAST_US".
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

struct Stream
{
    int flow, stream;
    uint32_t cwnd = 0, ssthresh = 0, inFlight = 0;
    int64_t rttUs = 0;
    Ptr<BulkSendApplication> application;
    Ptr<PacketSink> sink;
};

struct End
{
    int link, end;
    Ptr<PointToPointNetDevice> device;
};

std::vector<Stream*> streams;
std::vector<End> ends;
std::map<int, int64_t> lastUs;
std::map<int, uint64_t> received;

int64_t
NowUs()
{
    return Simulator::Now().GetMicroSeconds();
}

void
SetCwnd(Stream* s, uint32_t, uint32_t value)
{
    s->cwnd = value;
}

void
SetSsthresh(Stream* s, uint32_t, uint32_t value)
{
    s->ssthresh = value;
}

void
SetInFlight(Stream* s, uint32_t, uint32_t value)
{
    s->inFlight = value;
}

void
SetRtt(Stream* s, Time, Time value)
{
    s->rttUs = value.GetMicroSeconds();
}

void
Received(int flow, Ptr<const Packet> packet, const Address&)
{
    received[flow] += packet->GetSize();
    lastUs[flow] = NowUs();
}

void
Follow(Stream* s)
{
    Ptr<Socket> socket = s->application->GetSocket();
    socket->TraceConnectWithoutContext("CongestionWindow", MakeBoundCallback(&SetCwnd, s));
    socket->TraceConnectWithoutContext("SlowStartThreshold", MakeBoundCallback(&SetSsthresh, s));
    socket->TraceConnectWithoutContext("BytesInFlight", MakeBoundCallback(&SetInFlight, s));
    socket->TraceConnectWithoutContext("RTT", MakeBoundCallback(&SetRtt, s));
}

void
SampleSockets(int64_t intervalUs)
{
    for (const Stream* s : streams)
    {
        if (s->cwnd)
        {
            std::printf("socket %ld %d %d %u %u %u %ld %lu\n", long(NowUs()), s->flow, s->stream, s->cwnd,
                        s->ssthresh, s->inFlight, long(s->rttUs), (unsigned long)s->sink->GetTotalRx());
        }
    }
    Simulator::Schedule(MicroSeconds(intervalUs), &SampleSockets, intervalUs);
}

void
SampleQueues(int64_t intervalUs)
{
    for (const End& e : ends)
    {
        Ptr<Queue<Packet>> queue = e.device->GetQueue();
        uint64_t sent = queue->GetTotalReceivedPackets() - queue->GetNPackets();
        uint64_t sentBytes = queue->GetTotalReceivedBytes() - queue->GetNBytes();
        std::printf("queue %ld %d %d %u %u %u %lu %lu\n", long(NowUs()), e.link, e.end, queue->GetNPackets(),
                    queue->GetNBytes(), queue->GetTotalDroppedPackets(), (unsigned long)sent,
                    (unsigned long)sentBytes);
    }
    Simulator::Schedule(MicroSeconds(intervalUs), &SampleQueues, intervalUs);
}

} // namespace

int
main()
{
    NodeContainer nodes;
    std::vector<Ipv4InterfaceContainer> addresses;
    std::map<int, Ipv4Address> addressOf;
    int mtu = 1500, link = 0, flow = 0;
    int64_t socketsUs = 0, queuesUs = 0, endUs = 0;
    std::string word;

    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    while (std::cin >> word)
    {
        if (word == "mtu")
        {
            std::cin >> mtu;
            Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mtu - 52));
        }
        else if (word == "node")
        {
            int count;
            std::cin >> count;
            nodes.Create(count);
            InternetStackHelper().Install(nodes);
        }
        else if (word == "link")
        {
            int a, b;
            int64_t delayNs;
            uint64_t rate[2];
            uint32_t limit[2];
            std::cin >> a >> b >> delayNs >> rate[0] >> limit[0] >> rate[1] >> limit[1];
            PointToPointHelper helper;
            helper.SetDeviceAttribute("Mtu", UintegerValue(mtu));
            helper.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delayNs)));
            NetDeviceContainer devices = helper.Install(nodes.Get(a), nodes.Get(b));
            for (int end = 0; end < 2; ++end)
            {
                Ptr<PointToPointNetDevice> device = DynamicCast<PointToPointNetDevice>(devices.Get(end));
                device->SetDataRate(DataRate(rate[end]));
                device->GetQueue()->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, limit[end]));
                ends.push_back({link, end, device});
            }
            std::string subnet = "10.0." + std::to_string(link) + ".0";
            Ipv4AddressHelper helperOfAddresses(subnet.c_str(), "255.255.255.252");
            Ipv4InterfaceContainer pair = helperOfAddresses.Assign(devices);
            // Assigning an address adds a queue discipline of its own before the device's queue.
            TrafficControlHelper().Uninstall(devices);
            addressOf.emplace(a, pair.GetAddress(0));
            addressOf.emplace(b, pair.GetAddress(1));
            ++link;
        }
        else if (word == "flow")
        {
            int sender, receiver, count;
            int64_t startUs, durationUs;
            uint32_t sendBuffer, receiveBuffer;
            std::string model;
            std::cin >> sender >> receiver >> model >> startUs >> durationUs >> count >> sendBuffer >> receiveBuffer;
            Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(sendBuffer));
            Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(receiveBuffer));
            nodes.Get(sender)->GetObject<TcpL4Protocol>()->SetAttribute(
                "SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + model)));
            uint16_t port = 5001 + flow;
            for (int stream = 0; stream < count; ++stream, port += 100)
            {
                InetSocketAddress place(addressOf.at(receiver), port);
                Ptr<PacketSink> sink = DynamicCast<PacketSink>(
                    PacketSinkHelper("ns3::TcpSocketFactory", place).Install(nodes.Get(receiver)).Get(0));
                sink->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Received, flow));
                BulkSendHelper bulk("ns3::TcpSocketFactory", place);
                Ptr<BulkSendApplication> application =
                    DynamicCast<BulkSendApplication>(bulk.Install(nodes.Get(sender)).Get(0));
                application->SetStartTime(MicroSeconds(startUs));
                application->SetStopTime(MicroSeconds(startUs + durationUs));
                auto* s = new Stream{flow, stream};
                s->application = application;
                s->sink = sink;
                streams.push_back(s);
                Simulator::Schedule(MicroSeconds(startUs) + NanoSeconds(1), &Follow, s);
            }
            ++flow;
        }
        else if (word == "sample")
        {
            std::cin >> socketsUs >> queuesUs;
        }
        else if (word == "end")
        {
            uint32_t seed;
            std::cin >> seed >> endUs;
            RngSeedManager::SetSeed(seed);
        }
        else
        {
            std::cerr << "unknown item " << word << "\n";
            return 1;
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    if (socketsUs)
    {
        Simulator::Schedule(MicroSeconds(socketsUs), &SampleSockets, socketsUs);
    }
    if (queuesUs)
    {
        Simulator::Schedule(MicroSeconds(queuesUs), &SampleQueues, queuesUs);
    }
    Simulator::Stop(MicroSeconds(endUs) + MilliSeconds(1));
    Simulator::Run();
    for (int number = 0; number < flow; ++number)
    {
        std::printf("received %d %lu %ld\n", number, (unsigned long)received[number], long(lastUs[number]));
    }
    Simulator::Destroy();
    return 0;
}
